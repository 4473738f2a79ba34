package rules

import (
	"fmt"
	"net/netip"
	"slices"
)

// Question is what Explain answers.
type Question struct {
	// Host is a name or an address.
	Host string
	Port uint16
	// Protocol is what is said there; "" is all of tls, http and tcp.
	Protocol Protocol
	// Addrs are the answers for a name; Names those that an address is an answer
	// for.
	Addrs []netip.Addr
	Names []string
	// Own tells the host's addresses; nil knows none.
	Own func(netip.Addr) bool
}

// Explain says in lines for people what is decided, and by which step of the order
// of precedence.
func (t *Table) Explain(q Question) []string {
	if t.policy.Mode != Rules && t.policy.Mode != Open {
		return []string{"denied: with mode none there is no way out at all"}
	}
	if q.Own == nil {
		q.Own = func(netip.Addr) bool { return false }
	}
	if a, ok := literal(q.Host); ok {
		q.Host, q.Addrs = "", []netip.Addr{a.Unmap().WithZone("")}
		return t.explainAddrs(q)
	}
	name, ok := Name(q.Host)
	if !ok {
		return []string{fmt.Sprintf("denied: %q is neither a name nor an address", q.Host)}
	}
	q.Host, q.Names = name, []string{name}
	lookup := t.Resolve(name)
	lines := []string{fmt.Sprintf("look-up of %s: %s", name, t.because(lookup))}
	lines = append(lines, t.lookupSteps(name)...)
	if lookup.Verdict == Deny {
		return lines
	}
	var kept []netip.Addr
	for _, a := range q.Addrs {
		a = a.Unmap().WithZone("")
		if d := t.Answer(name, a, q.Own(a)); d.Verdict == Deny {
			lines = append(lines, fmt.Sprintf("answer %s: left out, it is %s (rebind)", a, t.kindOf(a, q.Own(a))))
			continue
		}
		kept = append(kept, a)
	}
	if q.Addrs = kept; len(kept) == 0 {
		return append(lines, "there is no address to connect to")
	}
	return append(lines, t.explainAddrs(q)...)
}

// explainAddrs puts what is decided alike together.
func (t *Table) explainAddrs(q Question) []string {
	apps := []Protocol{TLS, HTTP, TCP}
	if q.Protocol != "" {
		apps = []Protocol{q.Protocol}
	}
	type group struct {
		addrs []netip.Addr
		apps  []Protocol
		lines []string
	}
	var groups []*group
	for _, a := range q.Addrs {
		var of []*group
		for _, app := range apps {
			lines := t.explainOne(q, a, app)
			i := slices.IndexFunc(of, func(g *group) bool { return slices.Equal(g.lines, lines) })
			if i < 0 {
				of = append(of, &group{[]netip.Addr{a}, nil, lines})
				i = len(of) - 1
			}
			of[i].apps = append(of[i].apps, app)
		}
		for _, g := range of {
			i := slices.IndexFunc(groups, func(old *group) bool { return slices.Equal(old.lines, g.lines) && slices.Equal(old.apps, g.apps) })
			if i < 0 {
				groups = append(groups, g)
				continue
			}
			groups[i].addrs = append(groups[i].addrs, a)
		}
	}
	var lines []string
	for _, g := range groups {
		lines = append(lines, fmt.Sprintf("%s to %s, port %d: %s", join(g.apps, ", "), join(g.addrs, ", "), q.Port, g.lines[0]))
		lines = append(lines, g.lines[1:]...)
	}
	return lines
}

// explainOne is the decision, and the steps to it.
func (t *Table) explainOne(q Question, a netip.Addr, app Protocol) []string {
	f := Flow{Protocol: TCP, Addr: a, Port: q.Port, Own: q.Own(a), Names: q.Names}
	if app == UDP || app == ICMP {
		f.Protocol = app
	}
	d := t.Connect(f)
	if d.Reason == Unsupported {
		return []string{"denied, there is no path for it without veth = true"}
	}
	said := ""
	if q.Host != "" && (app == TLS || app == HTTP) {
		said = q.Host
	}
	if d.Verdict == AskName {
		d = t.Named(f, Said{App: app, Name: said, Pinned: said != ""})
	}
	lines := []string{t.because(d)}
	if d.Reason == NoName {
		lines[0] = "denied, the client has to say a name that is allowed (no-name)"
	}
	return append(lines, t.steps(t.question(f).with(app, said, said != ""))...)
}
