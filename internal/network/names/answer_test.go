package names

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/exec-server/exec-server/internal/network/rules"
)

func TestAddresses(t *testing.T) {
	z := newZone(t,
		"pypi.org. 60 A 151.101.0.223", "pypi.org. 60 A 151.101.64.223", "pypi.org. 60 AAAA 2a04:4e42::223",
		"files.example.com. 60 CNAME edge.cdn.example.", "edge.cdn.example. 30 CNAME pop.cdn.example.", "pop.cdn.example. 90 A 151.101.1.1",
		"only4.example.com. 60 A 151.101.1.2")
	e := newEnvironment(t, upstream(t, z), allowing("pypi.org", "*.example.com")).serve()
	for _, c := range []struct {
		name  string
		qtype uint16
		want  []string
		rcode int
	}{
		{"pypi.org", dns.TypeA, []string{"pypi.org. A 151.101.0.223", "pypi.org. A 151.101.64.223"}, 0},
		{"PyPI.org", dns.TypeAAAA, []string{"PyPI.org. AAAA 2a04:4e42::223"}, 0},
		// The alias needs no rule, and is not seen.
		{"files.example.com", dns.TypeA, []string{"files.example.com. A 151.101.1.1"}, 0},
		{"files.example.com", dns.TypeAAAA, []string{}, 0},
		{"only4.example.com", dns.TypeAAAA, []string{}, 0},
		{"none.example.com", dns.TypeA, []string{}, dns.RcodeNameError},
		{"localhost", dns.TypeA, []string{"localhost. A 127.0.0.1"}, 0},
		{"app.localhost", dns.TypeAAAA, []string{"app.localhost. AAAA ::1"}, 0},
		{"localhost", dns.TypeMX, []string{}, 0},
	} {
		m := e.query(c.name, c.qtype)
		if m.Rcode != c.rcode || !m.RecursionAvailable || m.Authoritative || m.Truncated {
			t.Errorf("%s: %v", c.name, m.MsgHdr)
		}
		if diff := cmp.Diff(c.want, texts(m)); diff != "" {
			t.Errorf("%s %s: %s", c.name, typeName(c.qtype), diff)
		}
	}
	if got := e.Names.Names(netip.MustParseAddr("::ffff:151.101.1.1")); !slices.Equal(got, []string{"files.example.com"}) {
		t.Errorf("pinned to %v", got)
	}
	if !e.Pinned("PYPI.org.", netip.MustParseAddr("2a04:4e42::223")) || e.Pinned("pop.cdn.example", netip.MustParseAddr("151.101.1.1")) {
		t.Error("the pins are not those of the names asked for")
	}
}

// Nothing of a name that is denied, of any type or class, is to leave.
func TestTrap94NoPacketForDeniedNames(t *testing.T) {
	z := newZone(t)
	u := upstream(t, z)
	for _, p := range []rules.Policy{
		{Mode: rules.Rules},
		allowing("pypi.org", "*.example.com", "203.0.114.0/24"),
		{Mode: rules.Open, Rules: []rules.Rule{{Deny: []string{"*.secret.test", "secret.test", "org"}}}},
	} {
		e := newEnvironment(t, u, p).serve()
		for _, name := range []string{"secret.test", "c2VjcmV0.secret.test", "x.pypi.org.secret.test", "org", "1.0.0.10.in-addr.arpa",
			"254.169.254.169.in-addr.arpa", "7.0.100.198.in-addr.arpa", "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa",
			"a.in-addr.arpa", "arpa", `pypi\.org`, `a\000b.example.com`, "10.0.0.1", "."} {
			for qtype := range uint16(300) {
				if answered[qtype] {
					if name == "." && p.Mode == rules.Open {
						continue
					}
					if m := e.query(name, qtype); m.Rcode != dns.RcodeNameError || len(m.Answer) > 0 {
						t.Errorf("%v: %s %s: %v", p.Mode, name, typeName(qtype), m)
					}
				}
			}
		}
		for _, qtype := range []uint16{dns.TypeNULL, dns.TypeAXFR, dns.TypeIXFR, dns.TypeTKEY, 65280} {
			if m := e.query("a.example.com", qtype); m.Rcode != dns.RcodeNotImplemented {
				t.Errorf("%s: %v", typeName(qtype), m)
			}
		}
		q := new(dns.Msg).SetQuestion("version.example.com.", dns.TypeTXT)
		q.Question[0].Qclass = dns.ClassCHAOS
		if m := e.exchange(q, "udp"); m.Rcode != dns.RcodeNotImplemented {
			t.Errorf("class CH: %v", m)
		}
		for _, ev := range e.took() {
			if ev.Kind != Denied || ev.Reason == "" {
				t.Errorf("reported %+v", ev)
			}
		}
	}
	if n := z.queries.Load(); n != 0 {
		t.Errorf("%d queries left", n)
	}
}

func TestTypes(t *testing.T) {
	z := newZone(t, `example.com. 60 TXT "v=spf1 -all"`, "example.com. 60 MX 10 mail.example.net.", "mail.example.net. 60 A 10.0.0.1",
		"a.example.com. 60 CNAME example.com.", `example.com. 60 HTTPS 1 . ech="AEX+DQBB" ipv4hint="10.0.0.1"`,
		"8.8.8.8.in-addr.arpa. 60 PTR dns.google.")
	e := newEnvironment(t, upstream(t, z), rules.Policy{Mode: rules.Open}).serve()
	for _, c := range []struct {
		name  string
		qtype uint16
		want  []string
	}{
		{"example.com", dns.TypeTXT, []string{`example.com. TXT "v=spf1 -all"`}},
		{"a.example.com", dns.TypeMX, []string{"a.example.com. MX 10 mail.example.net."}},
		{"a.example.com", dns.TypeCNAME, []string{"a.example.com. CNAME example.com."}},
		{"8.8.8.8.in-addr.arpa", dns.TypePTR, []string{"8.8.8.8.in-addr.arpa. PTR dns.google."}},
		{"example.com", dns.TypeANY, []string{`example.com. HINFO "RFC8482" ""`}},
		{"example.com", dns.TypeHTTPS, []string{}},
		{"example.com", dns.TypeSVCB, []string{}},
	} {
		m := e.query(c.name, c.qtype)
		if m.Rcode != dns.RcodeSuccess || len(m.Extra)+len(m.Ns) > 0 {
			t.Errorf("%s: %v", c.name, m)
		}
		if diff := cmp.Diff(c.want, texts(m)); diff != "" {
			t.Errorf("%s %s: %s", c.name, typeName(c.qtype), diff)
		}
	}
	if n := z.queries.Load(); n != 4 {
		t.Errorf("%d queries left", n)
	}
}

func TestTrap95SpecialAddressesAreTakenOut(t *testing.T) {
	z := newZone(t, "all.example.com. 60 A 127.0.0.1", "all.example.com. 60 A 10.1.2.3", "all.example.com. 60 A 169.254.169.254",
		"all.example.com. 60 A 198.100.0.7", "all.example.com. 60 A 0.0.0.0", "some.example.com. 60 A 192.168.1.1", "some.example.com. 60 A 151.101.1.1",
		"all.example.com. 60 AAAA fd00:ec2::254", "all.example.com. 60 AAAA ::ffff:8.8.8.8", "all.example.com. 60 AAAA 64:ff9b::a00:1", "all.example.com. 60 AAAA ::1")
	e := newEnvironment(t, upstream(t, z), allowing("*.example.com")).serve()
	for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
		if m := e.query("all.example.com", qtype); m.Rcode != dns.RcodeSuccess || len(m.Answer) > 0 {
			t.Errorf("%v", m)
		}
	}
	var removed []string
	for _, ev := range e.took() {
		if ev.Kind != Removed {
			t.Errorf("reported %+v", ev)
		}
		if ev.Kind == Removed && ev.Reason == rules.Rebound && ev.Name == "all.example.com" {
			removed = append(removed, ev.Addr.String())
		}
	}
	want := []string{"127.0.0.1", "10.1.2.3", "169.254.169.254", "198.100.0.7", "0.0.0.0", "fd00:ec2::254", "64:ff9b::a00:1", "::1"}
	if diff := cmp.Diff(want, removed); diff != "" {
		t.Error(diff)
	}
	for _, a := range want {
		if e.Pinned("all.example.com", netip.MustParseAddr(a)) {
			t.Errorf("%s is pinned", a)
		}
	}
	if diff := cmp.Diff([]string{"some.example.com. A 151.101.1.1"}, texts(e.query("some.example.com", dns.TypeA))); diff != "" {
		t.Error(diff)
	}
	// A rule that names the network opens it, at once; and what was pinned is judged
	// again when it closes.
	p := allowing("*.example.com")
	p.Rules = append(p.Rules, rules.Rule{Allow: []string{"10.1.0.0/16"}})
	e.setPolicy(p)
	if diff := cmp.Diff([]string{"all.example.com. A 10.1.2.3"}, texts(e.query("all.example.com", dns.TypeA))); diff != "" {
		t.Error(diff)
	}
	e.setPolicy(allowing("*.example.com"))
	if m := e.query("all.example.com", dns.TypeA); len(m.Answer) > 0 {
		t.Errorf("%v", m)
	}
	e.setPolicy(rules.Policy{Mode: rules.Rules})
	if m := e.query("some.example.com", dns.TypeA); m.Rcode != dns.RcodeNameError {
		t.Errorf("a pinned name that is denied now: %v", m)
	}
}

// A long answer comes whole over TCP, and up to what the program can take over UDP.
func TestTruncation(t *testing.T) {
	var records []string
	for i := range 40 {
		records = append(records, fmt.Sprintf("long.example.com. 60 TXT %q", strings.Repeat("x", 40)+fmt.Sprint(i)))
	}
	z := newZone(t, records...)
	e := newEnvironment(t, upstream(t, z), allowing("*.example.com")).serve()
	q := new(dns.Msg).SetQuestion("long.example.com.", dns.TypeTXT)
	if m := e.exchange(q, "udp"); !m.Truncated || size(m) > 512 || m.IsEdns0() != nil {
		t.Errorf("%d bytes, %v", size(m), m.MsgHdr)
	}
	if m := e.exchange(q, "tcp"); m.Truncated || len(m.Answer) != 40 {
		t.Errorf("%d records, %v", len(m.Answer), m.MsgHdr)
	}
	q.SetEdns0(4096, true)
	if m := e.exchange(q, "udp"); !m.Truncated || size(m) <= 512 || size(m) > maxDatagram || m.IsEdns0().Do() {
		t.Errorf("%d bytes, %v", size(m), m.MsgHdr)
	}
}

// size is how long a message is as it was sent.
func size(m *dns.Msg) int {
	m.Compress = true
	return m.Len()
}

// What a program adds to its question stays here: it could carry anything.
func TestNothingOfTheProgramLeavesButTheName(t *testing.T) {
	z := newZone(t, "a.example.com. 60 A 151.101.1.1")
	e := newEnvironment(t, upstream(t, z), allowing("a.example.com")).serve()
	q := new(dns.Msg).SetQuestion("a.ExAmPlE.com.", dns.TypeA)
	q.CheckingDisabled, q.AuthenticatedData, q.Zero = true, true, true
	opt := q.SetEdns0(4000, true).IsEdns0()
	opt.Option = append(opt.Option,
		&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 32, Address: []byte{1, 2, 3, 4}},
		&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "6162636465666768"},
		&dns.EDNS0_LOCAL{Code: 65001, Data: []byte("exfiltrated")},
		&dns.EDNS0_PADDING{Padding: []byte("exfiltrated")})
	m := e.exchange(q, "udp")
	if len(m.Answer) != 1 || len(m.IsEdns0().Option) > 0 {
		t.Errorf("%v", m)
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	sent := z.seen[0]
	if sent.Question[0].Name == "a.ExAmPlE.com." && sent.Id == q.Id {
		t.Error("the letters and the id are the program's")
	}
	want := question("a.example.com", dns.TypeA)
	want.Id, want.Question[0].Name = sent.Id, sent.Question[0].Name
	if diff := cmp.Diff(want.String(), sent.String()); diff != "" {
		t.Error(diff)
	}
}

func TestDeniedNamesSayWhy(t *testing.T) {
	z := newZone(t, "rebound.test. 60 A 10.0.0.1")
	e := newEnvironment(t, upstream(t, z), allowing("rebound.test")).serve()
	for name, why := range map[string]string{"evil.test.": "name (mode)", "rebound.test.": "addresses"} {
		m := e.exchange(new(dns.Msg).SetQuestion(name, dns.TypeA).SetEdns0(1232, false), "udp")
		if o := m.IsEdns0().Option; len(o) != 1 || !strings.Contains(o[0].String(), "Blocked") || !strings.Contains(o[0].String(), why) {
			t.Errorf("%v", m)
		}
	}
}
