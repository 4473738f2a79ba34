package rules

import (
	"fmt"
	"net/netip"
	"slices"
)

// Bounds of a policy, so that a decision takes microseconds.
const (
	maxRules   = 1024
	maxEntries = 16384 // of all rules together
	maxPorts   = 256   // of a rule
)

// Table is a policy in the form in which it decides. It does not change, and any
// number of goroutines may ask it.
type Table struct {
	policy   Policy
	names    map[string][]*entry // exact, by name
	suffixes map[string][]*entry // by name
	prefixes map[netip.Prefix][]*entry
	lengths  []int    // of the prefixes, longest first
	all      []*entry // of everything
	denied   []*entry // names that are denied, in the order of precedence
}

// Compile checks a policy and makes it a table. The error is an *Error.
func Compile(p Policy) (*Table, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	p = p.Clone()
	entries := []*entry{}
	for i := range p.Rules {
		made, err := p.Rules[i].entries(p.VEth, p.Intercept)
		if err != nil {
			err.Rule = i
			return nil, err
		}
		for _, e := range made {
			e.rule = i
		}
		if entries = append(entries, made...); len(entries) > maxEntries {
			return nil, &Error{i, "", fmt.Sprintf("the rules have more than %d names, addresses and prefixes", maxEntries)}
		}
	}
	slices.SortStableFunc(entries, compare)
	t := &Table{policy: p, names: map[string][]*entry{}, suffixes: map[string][]*entry{}, prefixes: map[netip.Prefix][]*entry{}}
	for i, e := range entries {
		e.order = i
		t.add(e)
	}
	return t, nil
}

func (t *Table) add(e *entry) {
	switch e.kind {
	case exact:
		t.names[e.name] = append(t.names[e.name], e)
	case suffix:
		t.suffixes[e.name] = append(t.suffixes[e.name], e)
	case prefix:
		t.prefixes[e.prefix] = append(t.prefixes[e.prefix], e)
		if n := len(t.lengths); n == 0 || t.lengths[n-1] != e.prefix.Bits() {
			t.lengths = append(t.lengths, e.prefix.Bits())
		}
	case everything:
		t.all = append(t.all, e)
	}
	if e.deny && e.name != "" {
		t.denied = append(t.denied, e)
	}
}

// Policy is what the table was made from.
func (t *Table) Policy() Policy { return t.policy.Clone() }

// named calls each with the entries that have a name, most specific first.
func (t *Table) named(name string, each func(*entry)) {
	for _, e := range t.names[name] {
		each(e)
	}
	if len(t.suffixes) == 0 {
		return
	}
	parents(name, func(parent string) {
		for _, e := range t.suffixes[parent] {
			each(e)
		}
	})
}

// around are the entries that have an address, in their order.
func (t *Table) around(a netip.Addr) (found []*entry) {
	for _, length := range t.lengths {
		if p, err := a.Prefix(length); err == nil {
			found = append(found, t.prefixes[p]...)
		}
	}
	for _, e := range t.all {
		if e.everywhere() || e.prefix.Contains(a) {
			found = append(found, e)
		}
	}
	return found
}

// opening is the entry of those around a special address that allows it, if its
// range has so many bits.
func opening(around []*entry, bits int, covers func(*entry) bool) *entry {
	for _, e := range around {
		if !e.deny && e.kind == prefix && e.prefix.Bits() >= bits && covers(e) {
			return e
		}
	}
	return nil
}
