package rules

import "net/netip"

// Said is what the first bytes of a connection show, or one request of it.
type Said struct {
	// App is TLS or HTTP, or TCP for anything else, and for a connection whose
	// server spoke first.
	App Protocol
	// Name is the SNI or the host, in any case; "" if there is none.
	Name string
	// Pinned is set if the address is an answer that the name was given.
	Pinned bool
	// Hidden is set for a ClientHello whose name may not be the one that is meant.
	Hidden bool
}

// Connect decides about a flow when it begins, before anything is sent. AskName is
// for what depends on what the client will say.
func (t *Table) Connect(f Flow) Decision {
	f.Addr = f.Addr.Unmap().WithZone("")
	switch {
	case t.policy.Mode != Rules && t.policy.Mode != Open:
		return deny(ByMode).Decision
	case f.Protocol == UDP || f.Protocol == ICMP:
		if !t.policy.VEth {
			return deny(Unsupported).Decision
		}
		return t.decide(f.question(f.Protocol, "", false)).Decision
	case f.Protocol != TCP:
		return deny(Unsupported).Decision
	}
	blind := t.decide(f.question(TCP, "", false))
	if ask, ok := t.ask(f, blind); ok {
		return ask
	}
	return blind.Decision
}

// ask looks for something that the client could say and that would change the
// decision.
func (t *Table) ask(f Flow, blind outcome) (Decision, bool) {
	differs := func(o outcome) (Decision, bool) {
		d := Decision{AskName, o.Reason, o.Rule, nil}
		if o.Verdict == Deny {
			d.Reason, d.Rule = blind.Reason, blind.Rule
		}
		return d, o.Verdict != blind.Verdict || o.Credential != nil
	}
	for _, app := range []Protocol{TLS, HTTP} {
		for i := range len(f.Names) + 2 {
			said, sure := "", false
			switch {
			case i < len(f.Names):
				said, sure = f.Names[i], true
			case i == len(f.Names):
				said = unheard
			}
			o := t.decide(f.question(app, said, sure))
			if d, ok := differs(o); ok {
				return d, true
			}
			if said == unheard && o.Verdict == Allow && t.denies(f.Port, app, o.entry) {
				return Decision{AskName, o.Reason, o.Rule, nil}, true
			}
		}
	}
	return Decision{}, false
}

// denies tells whether some name is denied that stands above the entry.
func (t *Table) denies(port uint16, app Protocol, below *entry) bool {
	for _, e := range t.denied {
		if below != nil && e.order > below.order {
			return false
		}
		if e.covers(port, app) {
			return true
		}
	}
	return false
}

func (f Flow) question(app Protocol, said string, sure bool) question {
	return question{f.Addr, f.Own, f.Port, app, said, sure, f.Names}
}

// Named decides about a connection over TCP once it is known what its client said.
// It is asked again for every request of a connection.
func (t *Table) Named(f Flow, s Said) Decision {
	if t.policy.Mode != Rules && t.policy.Mode != Open {
		return deny(ByMode).Decision
	}
	f.Addr = f.Addr.Unmap().WithZone("")
	said := ""
	if _, isAddr := literal(s.Name); s.Name != "" && !isAddr && s.App != TCP {
		said = unheard
		if name, ok := Name(s.Name); ok {
			said = name
		}
	}
	sure := s.Pinned && !s.Hidden
	o := t.decide(f.question(s.App, said, sure))
	if o.Verdict == Deny && (o.entry != nil || o.Reason == ByMode) {
		return t.why(f, s, said, o).Decision
	}
	return o.Decision
}

// why looks for what the client could have said to be allowed, so that the reason
// is of use.
func (t *Table) why(f Flow, s Said, said string, o outcome) outcome {
	allowed := func(app Protocol, name string) bool {
		could := t.decide(f.question(app, name, true))
		if could.Verdict == Allow {
			o.Rule = could.Rule
		}
		return could.Verdict == Allow
	}
	if said != "" {
		switch {
		case !s.Pinned && allowed(s.App, said):
			o.Reason = WrongName
		case s.Hidden && allowed(s.App, said):
			o.Reason = HiddenName
		}
		return o
	}
	for _, name := range f.Names {
		if allowed(TLS, name) || allowed(HTTP, name) {
			o.Reason = NoName
			if s.Hidden {
				o.Reason = HiddenName
			}
			return o
		}
	}
	return o
}

// Resolve decides whether a name may be looked up: if there is something that it
// could be connected to for.
func (t *Table) Resolve(name string) Decision {
	name, ok := Name(name)
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
		if !e.prefix.IsValid() {
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
	if e := t.opening(a, bits, func(*entry) bool { return true }); e != nil {
		return Decision{Allow, ByRule, e.rule, nil}
	}
	return deny(Rebound).Decision
}
