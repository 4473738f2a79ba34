package rules

import (
	"net/netip"

	"github.com/exec-server/exec-server/internal/address"
)

// question is what the order of precedence is asked about.
type question struct {
	addr netip.Addr
	own  bool
	port uint16
	app  Protocol
	// said is the name that the client wants, "" if it said none; sure is set if
	// the address is known to be that name's.
	said string
	sure bool
	// names are those that have the address.
	names []string
}

// unheard is a name that no rule has.
const unheard = "."

// outcome is a decision, and the entry that it comes from, if any does.
type outcome struct {
	Decision
	entry *entry
}

func deny(r Reason) outcome { return outcome{Decision{Deny, r, -1, nil}, nil} }

// decide goes through the order of precedence.
func (t *Table) decide(q question) outcome {
	if reason, bits := special(q.addr, q.own); reason != "" {
		if t.opening(q.addr, bits, func(e *entry) bool { return e.covers(q.port, q.app) }) == nil {
			return deny(reason)
		}
	}
	if e := t.first(q); e != nil {
		if e.deny {
			return outcome{Decision{Deny, ByRule, e.rule, nil}, e}
		}
		return outcome{Decision{Allow, ByRule, e.rule, e.credential}, e}
	}
	if t.policy.Mode == Open {
		return outcome{Decision{Allow, ByMode, -1, nil}, nil}
	}
	return deny(ByMode)
}

// special is why an address is denied unless a rule opens it, and how long the
// prefix has to be that does; "" for others.
func special(a netip.Addr, own bool) (Reason, int) {
	kind, within := address.Class(a)
	if own && kind != address.Metadata && kind != address.Loopback {
		return OwnAddress, a.BitLen()
	}
	switch kind {
	case address.Public:
		return "", 0
	case address.Metadata:
		return Metadata, within.Bits()
	case address.Loopback:
		return LoopbackOf, within.Bits()
	case address.LinkLocal:
		return LinkLocal, within.Bits()
	case address.Private:
		return Private, within.Bits()
	}
	return Reserved, max(within.Bits(), 0)
}

// first is the entry that decides, or nil.
func (t *Table) first(q question) (best *entry) {
	consider := func(e *entry) {
		if (best == nil || e.order < best.order) && e.covers(q.port, q.app) {
			best = e
		}
	}
	if q.said != "" {
		// A name that is only claimed allows nothing.
		t.named(q.said, func(e *entry) {
			if e.deny || q.sure {
				consider(e)
			}
		})
	}
	for _, name := range q.names {
		t.named(name, func(e *entry) {
			if !e.deny && e.protocols.trusting(q.app) || e.deny && q.said == "" {
				consider(e)
			}
		})
	}
	for _, list := range [][]*entry{t.prefixes, t.all} {
		for _, e := range list {
			if e.contains(q.addr) {
				consider(e)
			}
		}
	}
	return best
}
