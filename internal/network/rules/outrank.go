package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Outranked says in lines which rules, from that index on, do not deny something
// because a rule that allows it stands above. That names may have addresses in a
// prefix is not looked at.
func (t *Table) Outranked(from int) (lines []string) {
	var denied, allowed []*entry
	t.each(func(e *entry) {
		if !e.deny {
			allowed = append(allowed, e)
		} else if e.rule >= from {
			denied = append(denied, e)
		}
	})
	by := map[[2]int]bool{}
	for _, d := range denied {
		for _, a := range allowed {
			if a.order < d.order && d.meets(a) {
				by[[2]int{d.rule, a.rule}] = true
			}
		}
	}
	for pair := range by {
		lines = append(lines, fmt.Sprintf("rule %d does not deny what rule %d allows, which stands above it: %s", pair[0]+1, pair[1]+1, t.policy.Rules[pair[1]]))
	}
	slices.Sort(lines)
	return lines
}

// each calls see with all entries, in no order.
func (t *Table) each(see func(*entry)) {
	for _, of := range []map[string][]*entry{t.names, t.suffixes} {
		for _, list := range of {
			for _, e := range list {
				see(e)
			}
		}
	}
	for _, list := range t.prefixes {
		for _, e := range list {
			see(e)
		}
	}
	for _, e := range t.all {
		see(e)
	}
}

// meets tells whether something is of both entries.
func (e *entry) meets(other *entry) bool {
	if e.protocols.whole()&other.protocols.whole() == 0 {
		return false
	}
	if e.ports != nil && other.ports != nil && !slices.ContainsFunc(e.ports, func(p Ports) bool {
		return slices.ContainsFunc(other.ports, func(o Ports) bool { return p.First <= o.Last && o.First <= p.Last })
	}) {
		return false
	}
	switch {
	case e.everywhere():
		return true
	case e.prefix.IsValid():
		return other.prefix.IsValid() && e.prefix.Overlaps(other.prefix)
	case e.kind == suffix:
		return strings.HasSuffix("."+other.name, "."+e.name) && (other.kind == suffix || other.name != e.name)
	}
	return other.kind == exact && other.name == e.name
}

// whole has TLS and HTTP as well if it has TCP, which they are.
func (s protocols) whole() protocols {
	if s&bits[TCP] != 0 {
		s |= bits[TLS] | bits[HTTP]
	}
	return s
}
