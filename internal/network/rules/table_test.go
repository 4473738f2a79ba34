package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

func compile(t testing.TB, p Policy) *Table {
	t.Helper()
	table, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// policy is one of rules as Parse reads them, behind "+" or "-".
func policy(t testing.TB, mode Mode, words ...string) Policy {
	t.Helper()
	p := Policy{Mode: mode}
	for _, w := range words {
		r, err := Parse(w[1:], w[0] == '-')
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

// at81 is a word for port 81 of an address or a prefix.
func at81(host string) string {
	return Rule{Allow: []string{host}, Ports: []Ports{{81, 81}}}.Words()[0]
}

func tcp(addr string, port uint16, names ...string) Flow {
	return Flow{Protocol: TCP, Addr: netip.MustParseAddr(addr), Port: port, Names: names}
}

func (d Decision) String() string {
	return fmt.Sprintf("%s by %s, %d", [...]string{"deny", "allow", "ask"}[d.Verdict], d.Reason, d.Rule+1)
}

func TestANameIsAskedForAndHasToBeTheAddressesOwn(t *testing.T) {
	table := compile(t, policy(t, Rules, "+pypi.org"))
	f := tcp("1.1.1.1", 443, "pypi.org")
	if d := table.Connect(f); d.String() != "ask by rule, 1" {
		t.Error(d)
	}
	// Neither the address alone nor another port is opened by what was looked up.
	for _, f := range []Flow{tcp("1.1.1.1", 443), tcp("1.1.1.1", 22, "pypi.org"), tcp("1.1.1.1", 443, "other.org")} {
		if d := table.Connect(f); d.String() != "deny by mode, 0" {
			t.Errorf("%+v: %s", f, d)
		}
	}
	for _, c := range []struct {
		said Said
		want string
	}{
		{Said{TLS, "PyPI.org", true, false}, "allow by rule, 1"},
		{Said{HTTP, "pypi.org", true, false}, "allow by rule, 1"},
		{Said{TLS, "pypi.org", false, false}, "deny by wrong-name, 1"},
		{Said{TLS, "pypi.org", true, true}, "deny by hidden-name, 1"},
		{Said{TLS, "", false, true}, "deny by hidden-name, 1"},
		{Said{TLS, "other.org", true, false}, "deny by mode, 0"},
		{Said{TLS, "bad name", true, false}, "deny by mode, 0"},
		{Said{TLS, "", false, false}, "deny by no-name, 1"},
		{Said{TCP, "", false, false}, "deny by no-name, 1"},
		{Said{HTTP, "1.1.1.1", false, false}, "deny by no-name, 1"},
		{Said{HTTP, "[::1]", true, false}, "deny by no-name, 1"},
	} {
		if d := table.Named(f, c.said); d.String() != c.want {
			t.Errorf("%+v: %s, want %s", c.said, d, c.want)
		}
	}
}

// TestConnect has rows of the order of precedence, one against the next.
func TestConnect(t *testing.T) {
	for _, c := range []struct {
		mode  Mode
		rules []string
		flow  Flow
		want  string
	}{
		{None, []string{"+*"}, tcp("1.1.1.1", 443), "deny by mode, 0"},
		{Rules, nil, tcp("1.1.1.1", 443), "deny by mode, 0"},
		{Open, nil, tcp("1.1.1.1", 443), "allow by mode, 0"},
		{Open, nil, tcp("::ffff:1.1.1.1", 443), "allow by mode, 0"},
		{Open, nil, tcp("::ffff:10.0.0.1", 443), "deny by private, 0"},
		{Rules, []string{"+*"}, tcp("1.1.1.1", 22), "allow by rule, 1"},
		{Rules, []string{"+0.0.0.0/0"}, tcp("2606::1", 22), "deny by mode, 0"},
		{Rules, []string{"+::/0"}, tcp("2606::1", 22), "allow by rule, 1"},
		{Rules, []string{"+1.0.0.0/8", "-1.1.0.0/16"}, tcp("1.1.1.1", 22), "deny by rule, 2"},
		{Rules, []string{"-1.0.0.0/8", "+1.1.0.0/16"}, tcp("1.1.1.1", 22), "allow by rule, 2"},
		{Rules, []string{"-1.0.0.0/8", "+1.0.0.0/8"}, tcp("1.1.1.1", 22), "deny by rule, 1"},
		{Rules, []string{"+1.0.0.0/8:22", "-1.0.0.0/8"}, tcp("1.1.1.1", 22), "allow by rule, 1"},
		{Rules, []string{"+1.0.0.0/8/tcp", "-1.0.0.0/8:22"}, tcp("1.1.1.1", 22), "deny by rule, 2"},
		{Rules, []string{"+a.x:22/tcp", "-1.1.1.1"}, tcp("1.1.1.1", 22, "a.x"), "allow by rule, 1"},
		{Rules, []string{"+*.x:22/tcp", "-1.1.1.1"}, tcp("1.1.1.1", 22, "a.x"), "deny by rule, 2"},
		{Rules, []string{"+*.x:22/tcp", "-0.0.0.0/0"}, tcp("1.1.1.1", 22, "a.x"), "allow by rule, 1"},
		{Rules, []string{"+*.x:22/tcp", "-*.a.x"}, tcp("1.1.1.1", 22, "b.a.x"), "deny by rule, 2"},
		{Rules, []string{"+*.x:22/tcp", "-*.a.x:22"}, tcp("1.1.1.1", 22, "b.a.x"), "deny by rule, 2"},
		{Rules, []string{"+*.x:22/tcp"}, tcp("1.1.1.1", 22, "x"), "deny by mode, 0"},
		{Rules, []string{"+a.x:22/tls"}, tcp("1.1.1.1", 22, "a.x"), "ask by rule, 1"},
		{Rules, []string{"+1.1.1.1/tls"}, tcp("1.1.1.1", 22), "ask by rule, 1"},
		{Rules, []string{"+1.1.1.1", "-a.x"}, tcp("1.1.1.1", 22), "ask by rule, 1"},
		{Rules, []string{"+1.1.1.1", "-*.x"}, tcp("1.1.1.1", 22), "allow by rule, 1"},
		{Open, []string{"-a.x"}, tcp("1.1.1.1", 443), "ask by mode, 0"},
		{Open, []string{"-a.x:443"}, tcp("1.1.1.1", 22), "allow by mode, 0"},
		{Open, []string{"-*/http"}, tcp("1.1.1.1", 80), "ask by mode, 0"},
		{Open, []string{"-*:25"}, tcp("1.1.1.1", 25), "deny by rule, 1"},
		{Open, nil, Flow{Protocol: UDP, Addr: netip.MustParseAddr("1.1.1.1"), Port: 443}, "deny by protocol, 0"},
		{Open, nil, Flow{Protocol: "sctp", Addr: netip.MustParseAddr("1.1.1.1")}, "deny by protocol, 0"},
		{Open, nil, Flow{Protocol: TCP}, "deny by reserved, 0"},
	} {
		if d := compile(t, policy(t, c.mode, c.rules...)).Connect(c.flow); d.String() != c.want {
			t.Errorf("%s %v, %+v: %s, want %s", c.mode, c.rules, c.flow, d, c.want)
		}
	}
}

func TestWithVEthThereIsMoreThanTCP(t *testing.T) {
	p := policy(t, Rules, "+1.1.1.1:443/udp", "+2.2.2.2/icmp", "+a.x:443/udp", "-3.3.3.3:1")
	p.VEth = true
	for mode, want := range map[Mode][]string{
		Rules: {"allow by rule, 1", "deny by mode, 0", "deny by mode, 0", "allow by rule, 2", "allow by rule, 3", "deny by mode, 0", "deny by link-local, 0"},
		Open:  {"allow by rule, 1", "allow by mode, 0", "allow by mode, 0", "allow by rule, 2", "allow by rule, 3", "allow by mode, 0", "deny by link-local, 0"},
	} {
		p.Mode = mode
		table := compile(t, p)
		for i, f := range []Flow{
			{Protocol: UDP, Addr: netip.MustParseAddr("1.1.1.1"), Port: 443}, {Protocol: UDP, Addr: netip.MustParseAddr("1.1.1.1"), Port: 53},
			{Protocol: ICMP, Addr: netip.MustParseAddr("1.1.1.1")}, {Protocol: ICMP, Addr: netip.MustParseAddr("2.2.2.2")},
			{Protocol: UDP, Addr: netip.MustParseAddr("4.4.4.4"), Port: 443, Names: []string{"a.x"}},
			{Protocol: ICMP, Addr: netip.MustParseAddr("3.3.3.3")}, {Protocol: ICMP, Addr: netip.MustParseAddr("fe80::1")},
		} {
			if d := table.Connect(f); d.String() != want[i] {
				t.Errorf("%s, %+v: %s, want %s", mode, f, d, want[i])
			}
		}
	}
}

// Special addresses are denied whatever is allowed, but for prefixes within their
// range.
func TestSpecialAddressesNeedARuleOfTheirOwn(t *testing.T) {
	for _, c := range []struct{ addr, reason, wide, within string }{
		{"169.254.169.254", "metadata", "169.254.0.0/16", "169.254.169.254"},
		{"169.254.170.2", "metadata", "169.254.170.0/24", "169.254.170.2"},
		{"100.100.100.200", "metadata", "100.100.100.0/24", "100.100.100.200"},
		{"168.63.129.16", "metadata", "168.63.129.16/31", "168.63.129.16"},
		{"fd00:ec2::254", "metadata", "fd00:ec2::/64", "fd00:ec2::254"},
		{"fd20:ce::254", "metadata", "fd20:ce::/64", "fd20:ce::254"},
		{"64:ff9b::a9fe:a9fe", "metadata", "64:ff9b::/96", "64:ff9b::a9fe:a9fe"},
		{"127.0.0.1", "loopback", "126.0.0.0/7", "127.0.0.0/8"},
		{"0.0.0.0", "loopback", "0.0.0.0/1", "0.0.0.0/8"},
		{"::1", "loopback", "::/64", "::1"},
		{"169.254.1.1", "link-local", "168.0.0.0/5", "169.254.1.0/24"},
		{"fe80::1", "link-local", "fe00::/7", "fe80::/10"},
		{"10.1.2.3", "private", "0.0.0.0/1", "10.0.0.0/8"},
		{"100.64.0.1", "private", "100.0.0.0/8", "100.64.0.0/10"},
		{"fd00::1", "private", "f000::/4", "fd00::/8"},
		{"224.0.0.1", "reserved", "192.0.0.0/2", "224.0.0.0/4"},
	} {
		a := netip.MustParseAddr(c.addr)
		for _, mode := range []Mode{Rules, Open} {
			shut := compile(t, policy(t, mode, "+*", "+0.0.0.0/0", "+::/0", "+"+c.wide, "+a.x/tcp", "+a.x", "+"+at81(c.within)))
			for _, d := range []Decision{shut.Connect(tcp(c.addr, 80, "a.x")), shut.Named(tcp(c.addr, 80, "a.x"), Said{HTTP, "a.x", true, false})} {
				if d.String() != "deny by "+c.reason+", 0" {
					t.Errorf("%s, %s: %s", mode, c.addr, d)
				}
			}
			if d := compile(t, policy(t, mode, "+*", "+"+c.wide)).Answer("a.x", a, false); d.String() != "deny by rebind, 0" {
				t.Errorf("%s, answer %s: %s", mode, c.addr, d)
			}
			open := compile(t, policy(t, mode, "+a.x", "+"+c.within))
			if d := open.Connect(tcp(c.addr, 80)); d.String() != "allow by rule, 2" {
				t.Errorf("%s, %s opened: %s", mode, c.addr, d)
			}
			if d := open.Answer("a.x", a, false); d.String() != "allow by rule, 2" {
				t.Errorf("%s, answer %s opened: %s", mode, c.addr, d)
			}
			denied := compile(t, policy(t, mode, "-"+c.within, "+"+c.within))
			if d := denied.Connect(tcp(c.addr, 80)); d.String() != "deny by rule, 1" {
				t.Errorf("%s, %s opened and denied: %s", mode, c.addr, d)
			}
		}
	}
	f := tcp("1.1.1.1", 80)
	f.Own = true
	if d := compile(t, policy(t, Open, "+1.1.1.0/31", "+*")).Connect(f); d.String() != "deny by host, 0" {
		t.Error(d)
	}
	if d := compile(t, policy(t, Open, "+1.1.1.1")).Connect(f); d.String() != "allow by rule, 1" {
		t.Error(d)
	}
	if d := compile(t, policy(t, Open)).Answer("a.x", f.Addr, true); d.String() != "deny by rebind, 0" {
		t.Error(d)
	}
}

func TestResolve(t *testing.T) {
	rules := []string{"+a.x", "+*.b.x:22/tcp", "-*.c.b.x", "-d.b.x:22", "-e.b.x/udp", "+f.c.b.x:1", "+1.1.1.1", "-0.0.0.0/0"}
	for name, want := range map[string]string{
		"a.x": "allow by rule, 1", "A.X.": "allow by rule, 1", "b.x": "deny by mode, 0", "y.b.x": "allow by rule, 2", "c.b.x": "allow by rule, 2",
		"y.c.b.x": "deny by rule, 3", "d.b.x": "allow by rule, 2", "e.b.x": "allow by rule, 2", "f.c.b.x": "allow by rule, 6",
		"1.1.1.1": "deny by mode, 0", "": "deny by mode, 0", "secret data.a.x": "deny by mode, 0",
	} {
		if d := compile(t, policy(t, Rules, rules...)).Resolve(name); d.String() != want {
			t.Errorf("%q: %s, want %s", name, d, want)
		}
		if d := compile(t, policy(t, None, rules...)).Resolve(name); d.Verdict != Deny {
			t.Errorf("none, %q: %s", name, d)
		}
	}
	if d := compile(t, policy(t, Open, rules...)).Resolve("b.x"); d.String() != "allow by mode, 0" {
		t.Error(d)
	}
	if d := compile(t, policy(t, Open, "-*")).Resolve("b.x"); d.String() != "deny by rule, 1" {
		t.Error(d)
	}
	if d := compile(t, policy(t, Rules, "+*")).Resolve("b.x"); d.String() != "allow by rule, 1" {
		t.Error(d)
	}
}

// A credential goes to its name alone, over what it is for, and its rule asks even
// in mode open.
func TestCredentials(t *testing.T) {
	p := policy(t, Open, "+api.x", "+*.x")
	p.Intercept, p.Rules[0].Credential = true, &Credential{SecretEnv: "S"}
	table := compile(t, p)
	f := tcp("1.1.1.1", 443, "api.x", "b.x")
	if d := table.Connect(f); d.Verdict != AskName || d.Credential != nil {
		t.Error(d)
	}
	for _, s := range []Said{{TLS, "api.x", true, false}, {TLS, "api.x", false, false}, {TLS, "api.x", true, true}, {HTTP, "api.x", true, false}, {TLS, "b.x", true, false}, {TLS, "", false, false}} {
		d := table.Named(f, s)
		if d.Verdict != Allow || (d.Credential != nil) != (s == Said{TLS, "api.x", true, false}) {
			t.Errorf("%+v: %s %v", s, d, d.Credential)
		}
	}
}

// A decision of a policy as large as there may be.
func BenchmarkConnect(b *testing.B) {
	p := Policy{Mode: Rules}
	for i := range 1000 {
		p.Rules = append(p.Rules, Rule{Allow: []string{fmt.Sprintf("h%d.example", i), fmt.Sprintf("*.s%d.example", i), fmt.Sprintf("11.%d.%d.0/24", i/256, i%256)}})
	}
	slices.Reverse(p.Rules)
	table, f := compile(b, p), tcp("12.1.1.1", 443, "h1.example", "a.b.c.s2.example")
	for b.Loop() {
		if d := table.Connect(f); d.Verdict != AskName {
			b.Fatal(d)
		}
	}
}
