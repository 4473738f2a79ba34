package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/exec-server/exec-server/internal/address"
)

// Explain says what is decided, and by which step of the order of precedence.
func (t *Table) Explain(q Question) Explanation {
	x := &Explanation{}
	if Inside(q.Host) {
		x.add(Finding{Decision: "allowed", Reason: Local}, fmt.Sprintf("allowed: %s is the environment's own loopback, which no rule is about (local)", q.Host))
		return x.conclude()
	}
	if t.policy.Mode != Rules && t.policy.Mode != Open {
		x.add(finding(deny(ByMode).Decision), "denied: with mode none there is no way out at all")
		return x.conclude()
	}
	if q.Own == nil {
		q.Own = func(netip.Addr) bool { return false }
	}
	if a, ok := literal(q.Host); ok {
		q.Host, q.Addrs = "", []netip.Addr{a.Unmap().WithZone("")}
		t.explainAddrs(x, q)
		return x.conclude()
	}
	name, ok := address.Name(q.Host)
	if !ok {
		x.add(finding(deny(ByMode).Decision), fmt.Sprintf("denied: %q is neither a name nor an address", q.Host))
		return x.conclude()
	}
	q.Host, q.Names = name, []string{name}
	lookup := t.Resolve(name)
	f := finding(lookup)
	f.Lookup = name
	x.add(f, fmt.Sprintf("look-up of %s: %s", name, t.because(lookup)))
	x.Lines = append(x.Lines, t.lookupSteps(name)...)
	if lookup.Verdict == Deny {
		return x.conclude()
	}
	switch kept := t.explainAnswers(x, q); {
	case len(q.Addrs) == 0:
		x.Lines = append(x.Lines, "there is no address to connect to")
	case len(kept) == 0:
		x.Lines = append(x.Lines, "denied (rebind): no answer is left to connect to, unless a rule allows its prefix")
	default:
		q.Addrs = kept
		t.explainAddrs(x, q)
	}
	return x.conclude()
}

// Inside tells whether a host is the environment itself, where programs reach each
// other whatever the policy is.
func Inside(host string) bool {
	if a, ok := literal(host); ok {
		a = a.Unmap()
		return a.IsLoopback() || a.IsUnspecified() // which Linux takes for loopback
	}
	name, ok := address.Name(host)
	return ok && (name == "localhost" || strings.HasSuffix(name, ".localhost"))
}

// explainAnswers returns those of a look-up's addresses that are not left out.
func (t *Table) explainAnswers(x *Explanation, q Question) (kept []netip.Addr) {
	for _, a := range q.Addrs {
		a = a.Unmap().WithZone("")
		d := t.Answer(q.Host, a, q.Own(a))
		if d.Verdict == Allow {
			kept = append(kept, a)
			continue
		}
		f := finding(d)
		f.Addrs = []netip.Addr{a}
		x.add(f, fmt.Sprintf("answer %s: left out, it is %s (rebind)", a, t.kindOf(a, q.Own(a))))
	}
	return kept
}

// explainAddrs puts what is decided alike together.
func (t *Table) explainAddrs(x *Explanation, q Question) {
	apps := []Protocol{TLS, HTTP, TCP}
	if q.Protocol != "" {
		apps = []Protocol{q.Protocol}
	}
	type group struct {
		Finding
		lines []string
	}
	var groups []*group
	for _, a := range q.Addrs {
		var of []*group
		for _, app := range apps {
			d, lines := t.explainOne(q, a, app)
			i := slices.IndexFunc(of, func(g *group) bool { return slices.Equal(g.lines, lines) })
			if i < 0 {
				g := &group{finding(d), lines}
				g.Addrs = []netip.Addr{a}
				of = append(of, g)
				i = len(of) - 1
			}
			of[i].Protocols = append(of[i].Protocols, app)
		}
		for _, g := range of {
			i := slices.IndexFunc(groups, func(old *group) bool {
				return slices.Equal(old.lines, g.lines) && slices.Equal(old.Protocols, g.Protocols)
			})
			if i < 0 {
				groups = append(groups, g)
				continue
			}
			groups[i].Addrs = append(groups[i].Addrs, a)
		}
	}
	for _, g := range groups {
		x.add(g.Finding, fmt.Sprintf("%s %s: %s", join(g.Protocols, ", "), q.to(g.Addrs), g.lines[0]))
		x.Lines = append(x.Lines, g.lines[1:]...)
	}
}

// explainOne is the decision, and the steps to it.
func (t *Table) explainOne(q Question, a netip.Addr, app Protocol) (Decision, []string) {
	f := Flow{Protocol: TCP, Addr: a, Port: q.Port, Own: q.Own(a), Names: q.Names}
	if app == UDP || app == ICMP {
		f.Protocol = app
	}
	d := t.Connect(f)
	if d.Reason == Unsupported {
		return d, []string{"denied, there is no path for it without veth = true"}
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
	return d, append(lines, t.steps(t.question(f).with(app, said, said != ""))...)
}
