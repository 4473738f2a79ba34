package rules

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

var (
	someHosts = []string{"x", "a.x", "b.a.x", "y", "*.x", "*.a.x", "*.y", "*", "0.0.0.0/0", "::/0", "1.0.0.0/8", "1.1.0.0/16", "1.1.1.1", "128.0.0.0/1",
		"10.0.0.0/8", "10.1.0.0/16", "10.0.0.0/7", "10.1.1.1", "127.0.0.0/8", "169.254.0.0/16", "169.254.169.254", "100.64.0.0/10", "2600::/16", "fc00::/7", "fd00:ec2::254"}
	someNames = []string{"x", "a.x", "b.a.x", "c.b.a.x", "y", "b.y", "z"}
	someAddrs = []string{"1.1.1.1", "1.2.1.1", "200.1.1.1", "10.1.1.1", "10.2.1.1", "127.0.0.1", "169.254.169.254", "169.254.1.1", "100.100.100.200", "2600::1", "fd00:ec2::254", "fd00::1", "::1"}
	somePorts = [][]Ports{nil, nil, {{443, 443}}, {{1, 65535}}, {{80, 80}, {8000, 8100}}}
	someApps  = [][]Protocol{nil, nil, {TCP}, {TLS}, {HTTP}, {TLS, HTTP}, {UDP}, {TCP, UDP}}
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func randomPolicy(r *rand.Rand) Policy {
	p := Policy{Mode: pick(r, []Mode{Rules, Open}), VEth: r.IntN(2) == 0, Intercept: true}
	for range r.IntN(7) {
		rule := Rule{Ports: pick(r, somePorts), Protocols: pick(r, someApps)}
		var hosts []string
		for range 1 + r.IntN(2) {
			hosts = append(hosts, pick(r, someHosts))
		}
		if rule.Allow = hosts; r.IntN(2) == 0 {
			rule.Allow, rule.Deny = nil, hosts
		} else if rule.Protocols == nil && r.IntN(4) == 0 {
			rule.Allow, rule.Credential = []string{pick(r, someHosts[:7])}, &Credential{SecretEnv: "S"}
		}
		if !p.VEth && rule.Deny == nil && slices.Contains(rule.Protocols, UDP) {
			rule.Protocols = nil
		}
		p.Rules = append(p.Rules, rule)
	}
	return p
}

func randomFlow(r *rand.Rand) Flow {
	f := Flow{Protocol: TCP, Addr: netip.MustParseAddr(pick(r, someAddrs)), Port: pick(r, []uint16{22, 80, 443, 8080}), Own: r.IntN(8) == 0}
	for range r.IntN(3) {
		f.Names = append(f.Names, pick(r, someNames))
	}
	return f
}

// everythingSaid is what a client of someNames could say over TCP.
func everythingSaid(f Flow) (all []Said) {
	for _, app := range []Protocol{TLS, HTTP, TCP} {
		for _, name := range append([]string{"", "unheard.of"}, someNames...) {
			if app == TCP && name != "" {
				continue
			}
			pinned := slices.Contains(f.Names, name)
			all = append(all, Said{app, name, pinned, false}, Said{app, name, pinned, true})
		}
	}
	return all
}

func TestTheOrderIsAsWritten(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		p, f := randomPolicy(r), randomFlow(r)
		table := compile(t, p)
		for _, s := range everythingSaid(f) {
			d := table.Named(f, s)
			verdict, rule := written(p, f, s)
			if d.Verdict != verdict || d.Rule != rule && d.Reason != WrongName && d.Reason != NoName && d.Reason != HiddenName {
				t.Fatalf("seed %d: %v\n%+v, said %+v: %+v, want %d by %d", seed, p.Rules, f, s, d, verdict, rule)
			}
		}
		if f.Protocol = UDP; p.VEth {
			verdict, rule := written(p, f, Said{App: UDP})
			if d := table.Connect(f); d.Verdict != verdict || d.Rule != rule {
				t.Fatalf("seed %d: %v\n%+v: %+v, want %d by %d", seed, p.Rules, f, d, verdict, rule)
			}
		}
	}
}

// What Connect says is what Named says whatever the client says, and it asks only
// if that makes a difference.
func TestConnectKnowsWhatNamedWillSay(t *testing.T) {
	asked := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 6))
		p, f := randomPolicy(r), randomFlow(r)
		table := compile(t, p)
		connect := table.Connect(f)
		verdicts, credentials := map[Verdict]bool{}, false
		for _, s := range everythingSaid(f) {
			d := table.Named(f, s)
			verdicts[d.Verdict] = true
			credentials = credentials || d.Credential != nil
			if connect.Verdict != AskName && (d.Verdict != connect.Verdict || d.Credential != nil) {
				t.Fatalf("seed %d: %v\n%+v: %+v, said %+v: %+v", seed, p.Rules, f, connect, s, d)
			}
		}
		if connect.Verdict != AskName {
			continue
		}
		asked++
		// A name that is denied may be one that is not in someNames: *.y has more.
		if len(verdicts) == 1 && !credentials && !slices.ContainsFunc(p.Rules, func(r Rule) bool { return len(r.Deny) > 0 }) {
			t.Fatalf("seed %d: %v\n%+v: asked for nothing", seed, p.Rules, f)
		}
	}
	if asked < 50 {
		t.Errorf("asked %d times", asked)
	}
}

// A connection that a rule allows by its name needs a look-up, so Resolve allows it.
func TestWhatANameMayReachCanBeLookedUp(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 7))
		p, f := randomPolicy(r), randomFlow(r)
		table := compile(t, p)
		name := pick(r, someNames)
		f.Names = []string{name}
		for _, app := range []Protocol{TLS, HTTP, TCP, UDP} {
			o := table.decide(table.question(f).with(app, name, true))
			byName := o.entry != nil && o.entry.name != ""
			if o.Verdict == Allow && byName && table.Resolve(name).Verdict != Allow {
				t.Fatalf("seed %d: %v\n%s is allowed for %s and not looked up", seed, p.Rules, name, app)
			}
		}
	}
}

// The line that decides is the one that does.
func TestTheStepsEndWhereItIsDecided(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 8))
		p, f := randomPolicy(r), randomFlow(r)
		table := compile(t, p)
		q := table.question(f).with(pick(r, []Protocol{TLS, HTTP, TCP}), "", false)
		if q.app != TCP {
			q.said, q.sure = pick(r, someNames), r.IntN(2) == 0
		}
		o, steps := table.decide(q), table.steps(q)
		last := steps[len(steps)-1]
		want := "mode"
		switch {
		case o.entry != nil:
			want = o.entry.about()
		case o.Reason != ByMode:
			want = "special address"
		}
		if !strings.Contains(last, want) || !strings.HasSuffix(last, ": this decides") || strings.Count(strings.Join(steps, "\n"), "this decides") != 1 {
			t.Fatalf("seed %d: %v\n%+v: %+v\n%s", seed, p.Rules, q, o.Decision, strings.Join(steps, "\n"))
		}
	}
}

func TestTheOrderOfEntriesIsTotal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var list []*entry
		for i, rule := range randomPolicy(r).Rules {
			made, err := rule.entries(true, true)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range made {
				e.rule = i
				list = append(list, e)
			}
		}
		for _, a := range list {
			for _, b := range list {
				if cmp.Compare(compare(a, b), 0) != -cmp.Compare(compare(b, a), 0) {
					t.Fatalf("%s and %s", a.about(), b.about())
				}
			}
		}
	}
}
