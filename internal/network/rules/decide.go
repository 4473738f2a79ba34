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
	// names are those that have the address, and around the entries that do.
	names  []string
	around []*entry
}

// question is about a flow of which nothing was said.
func (t *Table) question(f Flow) question {
	a := f.Addr.Unmap().WithZone("")
	return question{addr: a, own: f.Own, port: f.Port, app: f.Protocol, names: f.Names, around: t.around(a)}
}

// with is the question if that is said.
func (q question) with(app Protocol, said string, sure bool) question {
	q.app, q.said, q.sure = app, said, sure
	return q
}

// covered tells whether an entry is about the port and what is said there.
func (q question) covered(e *entry) bool { return e.covers(q.port, q.app) }

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
		if opening(q.around, bits, q.covered) == nil {
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
	t.admit(q, func(e *entry) {
		if best == nil || e.order < best.order {
			best = e
		}
	})
	return best
}

// admit calls consider with the entries that count for the question.
func (t *Table) admit(q question, consider func(*entry)) {
	if q.said != "" {
		// A name that is only claimed allows nothing.
		t.named(q.said, func(e *entry) {
			if (e.deny || q.sure) && q.covered(e) {
				consider(e)
			}
		})
	}
	for _, name := range q.names {
		// Of each name the entry that decides about it: an address is not trusted
		// for one that is denied. A client that says which name it wants does not
		// suffer from the others of its address.
		var decides *entry
		t.named(name, func(e *entry) {
			if decides == nil && q.covered(e) && (e.deny || e.protocols.trusting(q.app)) {
				decides = e
			}
		})
		if decides != nil && (!decides.deny || q.said == "") {
			consider(decides)
		}
	}
	for _, e := range q.around {
		if q.covered(e) {
			consider(e)
		}
	}
}
