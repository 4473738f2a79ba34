package names

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// faked returns an upstream whose only server says what the function does, and how
// often it was asked.
func faked(answer func(name string, qtype uint16) []string) (*Upstream, *atomic.Int64) {
	asked := new(atomic.Int64)
	u, err := NewUpstream([]string{"192.0.2.53"})
	if err != nil {
		panic(err)
	}
	u.exchange = func(_ context.Context, _ netip.AddrPort, q *dns.Msg, _ bool) (*dns.Msg, error) {
		asked.Add(1)
		m := new(dns.Msg).SetReply(q)
		for _, s := range answer(dns.CanonicalName(q.Question[0].Name), q.Question[0].Qtype) {
			rr, err := dns.NewRR(s)
			if err != nil {
				return nil, err
			}
			if rr.Header().Rrtype == dns.TypeSOA {
				m.Ns = append(m.Ns, rr)
			} else {
				m.Answer = append(m.Answer, rr)
			}
		}
		return m, nil
	}
	return u, asked
}

func (e *environment) mustLookup(name string, v6 bool) found {
	e.t.Helper()
	f, err := e.lookup(e.t.Context(), name, v6)
	if err != nil {
		e.t.Fatal(err)
	}
	return f
}

func TestPinsLastAsLongAsUpstreamSays(t *testing.T) {
	for _, c := range []struct {
		ttl  int
		want time.Duration
	}{{0, minTTL}, {1, minTTL}, {60, time.Minute}, {86400, time.Hour}, {1 << 31, minTTL}} {
		synctest.Test(t, func(t *testing.T) {
			u, asked := faked(func(name string, _ uint16) []string {
				return []string{fmt.Sprintf("%s %d A 151.101.1.1", name, c.ttl)}
			})
			e := newEnvironment(t, u, allowing("a.example.com"))
			a := netip.MustParseAddr("151.101.1.1")
			e.mustLookup("a.example.com", false)
			time.Sleep(c.want - time.Second)
			if f := e.mustLookup("a.example.com", false); time.Until(f.until) != time.Second || asked.Load() != 1 || !e.Pinned("a.example.com", a) {
				t.Errorf("ttl %d: %v are left, %d were asked", c.ttl, time.Until(f.until), asked.Load())
			}
			time.Sleep(time.Second)
			if e.Pinned("a.example.com", a) || len(e.Names.Names(a)) > 0 {
				t.Errorf("ttl %d: still pinned", c.ttl)
			}
			if e.mustLookup("a.example.com", false); asked.Load() != 2 || !e.Pinned("a.example.com", a) {
				t.Errorf("ttl %d: not asked again", c.ttl)
			}
		})
	}
}

// The answer while a pin is valid is the pin, whatever upstream says by then.
func TestTrap95TheAnswerDoesNotFlip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := "151.101.1.1"
		u, _ := faked(func(name string, _ uint16) []string { return []string{name + " 30 A " + now} })
		e := newEnvironment(t, u, allowing("a.example.com"))
		e.mustLookup("a.example.com", false)
		now = "127.0.0.1"
		time.Sleep(29 * time.Second)
		if f := e.mustLookup("a.example.com", false); !slices.Equal(f.addrs, []netip.Addr{netip.MustParseAddr("151.101.1.1")}) {
			t.Errorf("%v", f.addrs)
		}
		time.Sleep(time.Second)
		if f := e.mustLookup("a.example.com", false); len(f.addrs) > 0 {
			t.Errorf("%v", f.addrs)
		}
		if got := e.Refresh(t.Context(), netip.MustParseAddr("151.101.1.1")); len(got) > 0 {
			t.Errorf("the old address has %v", got)
		}
		// It is not remembered that the answer was of no use.
		now = "151.101.1.2"
		if f := e.mustLookup("a.example.com", false); len(f.addrs) != 1 {
			t.Errorf("%v", f.addrs)
		}
	})
}

func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := map[string]string{"a.example.com.": "151.101.1.1", "b.example.com.": "151.101.1.1", "c.example.com.": "151.101.1.1"}
		u, asked := faked(func(name string, _ uint16) []string { return []string{name + " 30 A " + answers[name]} })
		e := newEnvironment(t, u, allowing("*.example.com"))
		a := netip.MustParseAddr("151.101.1.1")
		for _, name := range []string{"a", "b", "c"} {
			e.mustLookup(name+".example.com", false)
		}
		time.Sleep(time.Hour)
		answers["b.example.com."] = "151.101.1.2"
		e.setPolicy(rules.Policy{Mode: rules.Open, Rules: []rules.Rule{{Deny: []string{"c.example.com"}}}})
		if got := e.Refresh(t.Context(), a); !slices.Equal(got, []string{"a.example.com"}) || asked.Load() != 5 {
			t.Errorf("%v, %d were asked", got, asked.Load())
		}
		// What is valid is not asked again, nor is what no longer has the address.
		if got := e.Refresh(t.Context(), a); !slices.Equal(got, []string{"a.example.com"}) || asked.Load() != 5 {
			t.Errorf("%v, %d were asked", got, asked.Load())
		}
		// One that comes back is found again.
		time.Sleep(time.Hour)
		answers["b.example.com."] = "151.101.1.1"
		got := e.Refresh(t.Context(), a)
		slices.Sort(got)
		if !slices.Equal(got, []string{"a.example.com", "b.example.com"}) {
			t.Errorf("%v", got)
		}
		if got := e.Refresh(t.Context(), netip.MustParseAddr("151.101.1.9")); got != nil {
			t.Errorf("%v", got)
		}
	})
}

func TestThatThereIsNothingIsRememberedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soa := " 3600 SOA ns.example.com. root.example.com. 1 2 3 4 "
		u, asked := faked(func(name string, _ uint16) []string {
			switch name {
			case "short.example.com.":
				return []string{"example.com." + soa + "7"}
			case "long.example.com.":
				return []string{"example.com." + soa + "3600"}
			}
			return nil
		})
		e := newEnvironment(t, u, allowing("*.example.com"))
		for _, c := range []struct {
			name string
			ttl  time.Duration
		}{{"short", 7 * time.Second}, {"long", time.Minute}, {"unsaid", 0}} {
			asked.Store(0)
			e.mustLookup(c.name+".example.com", true)
			if c.ttl > 0 {
				time.Sleep(c.ttl - time.Second)
				if e.mustLookup(c.name+".example.com", true); asked.Load() != 1 {
					t.Errorf("%s: asked again", c.name)
				}
				time.Sleep(time.Second)
			}
			if e.mustLookup(c.name+".example.com", true); asked.Load() != 2 {
				t.Errorf("%s: not asked again", c.name)
			}
		}
	})
}

func TestTrap99PinsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := 0
		u, _ := faked(func(name string, _ uint16) []string {
			var all []string
			for range 3 {
				next++
				all = append(all, fmt.Sprintf("%s %d A 151.101.%d.%d", name, 5+next%3600, next/256%256, next%256))
			}
			return all
		})
		e := newEnvironment(t, u, allowing("*.example.com"))
		for i := range 10000 {
			name := fmt.Sprintf("n%d.example.com", i)
			for _, a := range e.mustLookup(name, false).addrs {
				if !e.Pinned(name, a) {
					t.Fatalf("%s of %s was answered and is not pinned", a, name)
				}
			}
			if e.pins.count > maxPins {
				t.Fatalf("%d pins", e.pins.count)
			}
		}
		e.pins.verify(t)
		if e.pins.count < trimmedToPins {
			t.Errorf("only %d pins", e.pins.count)
		}
	})
}

func TestAnAddressAndANameHaveSoMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, _ := faked(func(name string, _ uint16) []string {
			if name != "many.example.com." {
				return []string{name + " 60 A 151.101.1.1"}
			}
			var all []string
			for i := range 100 {
				all = append(all, fmt.Sprintf("%s 60 A 151.101.2.%d", name, i), fmt.Sprintf("%s 60 A 151.101.2.%d", name, i))
			}
			return all
		})
		e := newEnvironment(t, u, allowing("*.example.com"))
		a := netip.MustParseAddr("151.101.1.1")
		for i := range 3 * maxNames {
			name := fmt.Sprintf("n%d.example.com", i)
			e.mustLookup(name, false)
			time.Sleep(time.Millisecond)
			if !e.Pinned(name, a) || len(e.Names.Names(a)) > maxNames {
				t.Fatalf("%d names after %s", len(e.Names.Names(a)), name)
			}
		}
		if f := e.mustLookup("many.example.com", false); len(f.addrs) != maxAddrs {
			t.Errorf("%d addresses", len(f.addrs))
		}
		e.pins.verify(t)
	})
}

// A name whose addresses go round keeps only so many of the former ones.
func TestFormerAddressesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := 0
		u, _ := faked(func(name string, _ uint16) []string {
			i++
			return []string{fmt.Sprintf("%s 5 A 151.101.1.%d", name, i%200)}
		})
		e := newEnvironment(t, u, allowing("*.example.com"))
		for range 1000 {
			e.mustLookup("a.example.com", false)
			time.Sleep(5 * time.Second)
		}
		e.pins.verify(t)
		if e.pins.count != maxFormer+1 || len(e.pins.holders) != maxFormer+1 {
			t.Errorf("%d pins, %d addresses", e.pins.count, len(e.pins.holders))
		}
	})
}

// verify holds the two sides of the pins against each other.
func (p *pins) verify(t *testing.T) {
	t.Helper()
	count, holds := 0, 0
	for k, e := range p.entries {
		count += e.size()
		for _, a := range slices.Concat(e.addrs, e.former) {
			holds++
			if _, ok := p.holders[a][k.name]; !ok {
				t.Errorf("%s does not hold %s", k.name, a)
			}
		}
	}
	for a, names := range p.holders {
		if len(names) == 0 || len(names) > maxNames {
			t.Errorf("%s has %d names", a, len(names))
		}
		holds -= len(names)
	}
	if count != p.count || holds != 0 {
		t.Errorf("counted %d pins and not %d, and %d without a holder", count, p.count, holds)
	}
}

func TestLookup(t *testing.T) {
	u, _ := faked(func(name string, qtype uint16) []string {
		return map[uint16][]string{dns.TypeA: {name + " 60 A 151.101.1.1"}, dns.TypeAAAA: {name + " 60 AAAA 2a04:4e42::223"}}[qtype]
	})
	e := newEnvironment(t, u, allowing("a.example.com"))
	got, removed, err := e.Lookup(t.Context(), "A.example.com.")
	if want := []netip.Addr{netip.MustParseAddr("151.101.1.1"), netip.MustParseAddr("2a04:4e42::223")}; err != nil || !slices.Equal(got, want) || len(removed) > 0 {
		t.Errorf("%v, %v, %v", got, removed, err)
	}
	denied := new(DeniedError)
	if _, _, err := e.Lookup(t.Context(), "b.example.com"); !errors.As(err, &denied) || denied.Decision.Reason != rules.ByMode {
		t.Errorf("%v", err)
	}
	if _, _, err := e.Lookup(t.Context(), "10.0.0.1"); !errors.As(err, &denied) || denied.Decision.Reason != BadName {
		t.Errorf("%v", err)
	}
}

// What the policy takes out is told, also when the rest comes from a pin; since nobody
// in the environment has asked it is not reported.
func TestLookupOfWhatIsTakenOut(t *testing.T) {
	u, _ := faked(func(name string, qtype uint16) []string {
		all := []string{name + " 60 A 10.1.2.3"}
		if name == "some.example.com." {
			all = append(all, name+" 60 A 151.101.1.1")
		}
		return map[uint16][]string{dns.TypeA: all}[qtype]
	})
	e := newEnvironment(t, u, allowing("*.example.com"))
	special := []netip.Addr{netip.MustParseAddr("10.1.2.3")}
	for name, want := range map[string][]netip.Addr{"some.example.com": {netip.MustParseAddr("151.101.1.1")}, "all.example.com": nil} {
		for range 2 {
			if got, removed, err := e.Lookup(t.Context(), name); err != nil || !slices.Equal(got, want) || !slices.Equal(removed, special) {
				t.Errorf("%s: %v, %v, %v", name, got, removed, err)
			}
		}
	}
	if got := e.took(); len(got) > 0 {
		t.Errorf("reported %+v", got)
	}
}
