package rules

import (
	"net/netip"

	"github.com/exec-server/exec-server/internal/address"
)

// Resolve decides whether a name may be looked up: if there is something that it
// could be connected to for.
func (t *Table) Resolve(name string) Decision {
	name, ok := address.Name(name)
	if !ok || t.policy.Mode != Rules && t.policy.Mode != Open {
		return deny(ByMode).Decision
	}
	var decides *entry
	consider := func(e *entry) {
		if decides == nil && (!e.deny || e.total(t.policy.VEth)) {
			decides = e
		}
	}
	t.named(name, consider)
	for _, e := range t.all {
		if e.everywhere() {
			consider(e)
		}
	}
	switch {
	case decides != nil && decides.deny:
		return Decision{Deny, ByRule, decides.rule, nil}
	case decides != nil:
		return Decision{Allow, ByRule, decides.rule, nil}
	case t.policy.Mode == Open:
		return Decision{Allow, ByMode, -1, nil}
	}
	return deny(ByMode).Decision
}

// Answer decides whether an address may be an answer for a name that Resolve
// allows. own is set for an address of the host.
func (t *Table) Answer(_ string, a netip.Addr, own bool) Decision {
	if t.policy.Mode != Rules && t.policy.Mode != Open {
		return deny(ByMode).Decision
	}
	a = a.Unmap().WithZone("")
	reason, bits := special(a, own)
	if reason == "" {
		return Decision{Allow, ByMode, -1, nil}
	}
	if e := opening(t.around(a), bits, func(*entry) bool { return true }); e != nil {
		return Decision{Allow, ByRule, e.rule, nil}
	}
	return deny(Rebound).Decision
}
