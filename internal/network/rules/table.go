package rules

import "github.com/exec-server/exec-server/internal/address"

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
	q := t.question(f)
	switch {
	case t.policy.Mode != Rules && t.policy.Mode != Open:
		return deny(ByMode).Decision
	case f.Protocol == UDP || f.Protocol == ICMP:
		if !t.policy.VEth {
			return deny(Unsupported).Decision
		}
		return t.decide(q).Decision
	case f.Protocol != TCP:
		return deny(Unsupported).Decision
	}
	blind := t.decide(q)
	if ask, ok := t.ask(q, blind); ok {
		return ask
	}
	return blind.Decision
}

// ask looks for something that the client could say and that would change the
// decision.
func (t *Table) ask(q question, blind outcome) (Decision, bool) {
	differs := func(o outcome) (Decision, bool) {
		d := Decision{AskName, o.Reason, o.Rule, nil}
		if o.Verdict == Deny {
			d.Reason, d.Rule = blind.Reason, blind.Rule
		}
		return d, o.Verdict != blind.Verdict || o.Credential != nil
	}
	for _, app := range []Protocol{TLS, HTTP} {
		for i := range len(q.names) + 2 {
			said, sure := "", false
			switch {
			case i < len(q.names):
				said, sure = q.names[i], true
			case i == len(q.names):
				said = unheard
			}
			o := t.decide(q.with(app, said, sure))
			if d, ok := differs(o); ok {
				return d, true
			}
			if said == unheard && o.Verdict == Allow && t.denies(q.port, app, o.entry) {
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

// Named decides about a connection over TCP once it is known what its client said.
// It is asked again for every request of a connection.
func (t *Table) Named(f Flow, s Said) Decision {
	if t.policy.Mode != Rules && t.policy.Mode != Open {
		return deny(ByMode).Decision
	}
	said := ""
	if _, isAddr := literal(s.Name); s.Name != "" && !isAddr && s.App != TCP {
		said = unheard
		if name, ok := address.Name(s.Name); ok {
			said = name
		}
	}
	q := t.question(f).with(s.App, said, s.Pinned && !s.Hidden)
	o := t.decide(q)
	if o.Verdict == Deny && (o.entry != nil || o.Reason == ByMode) {
		return t.why(q, s, o).Decision
	}
	return o.Decision
}

// why looks for what the client could have said to be allowed, so that the reason
// is of use.
func (t *Table) why(q question, s Said, o outcome) outcome {
	allowed := func(app Protocol, name string) bool {
		could := t.decide(q.with(app, name, true))
		if could.Verdict == Allow {
			o.Rule = could.Rule
		}
		return could.Verdict == Allow
	}
	if q.said != "" {
		switch {
		case !s.Pinned && allowed(s.App, q.said):
			o.Reason = WrongName
		case s.Hidden && allowed(s.App, q.said):
			o.Reason = HiddenName
		}
		return o
	}
	for _, name := range q.names {
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
