package policy

import (
	"net/netip"
	"strings"
	"testing"
)

func TestPatternsThatAreRefused(t *testing.T) {
	const (
		empty    = "domain pattern is empty"
		syntax   = "unsupported domain pattern syntax: "
		repeated = "unsupported repeated wildcard: "
		brackets = "brackets are only supported for IPv6 literals or [*]: "
		global   = "invalid value for network.denied_domains: "
		hint     = " (allowed exact hosts or scoped wildcards like *.example.com or **.example.com)"
	)
	for _, c := range []struct{ name, rule, want string }{
		{"", "allow", empty}, {"  ", "allow", empty}, {"*.", "allow", empty}, {"**.", "deny", empty}, {"", "deny", empty},
		{"a b", "allow", syntax + "a b"}, {"http://x", "allow", syntax + "http://x"}, {"a/b", "deny", syntax + "a/b"},
		{"{", "allow", syntax + "{"}, {`a\b`, "allow", syntax + `a\b`}, {"1.1.1.0/24", "allow", syntax + "1.1.1.0/24"},
		{"**", "allow", repeated + "**"}, {"**a", "allow", repeated + "**a"}, {"***.a", "allow", repeated + "***.a"},
		{"a.**.b", "allow", repeated + "a.**.b"}, {"**.**.a", "deny", repeated + "**.**.a"}, {"[**]", "allow", repeated + "[**]"},
		{"[", "allow", brackets + "["}, {"[a", "deny", brackets + "[a"}, {"a]b", "allow", brackets + "a]b"}, {"[::1]x", "allow", brackets + "[::1]x"},
		{"[1.2.3.4]", "allow", brackets + "[1.2.3.4]"},
		{"*", "deny", global + "*" + hint}, {" * ", "deny", global + "*" + hint}, {"*:80", "deny", global + "*:80" + hint}, {"[*]", "deny", global + "[*]" + hint},
	} {
		if _, err := New(map[string]string{c.name: c.rule}, false); err == nil || err.Error() != c.want {
			t.Errorf("%q: %s: got %v, want %s", c.name, c.rule, err, c.want)
		}
	}
	for _, name := range []string{"*", "[*]", "*.*", "*.x.*", "a*", "x:80", "a:", "a..b", ".a", "::1", "[::1]:9", "?", "**.*.a", " A ", strings.Repeat("x", 300)} {
		if _, err := New(map[string]string{name: "allow"}, false); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
	// Denied names are looked at first, each kind in order.
	_, err := New(map[string]string{"[": "allow", "b b": "deny", "a a": "deny"}, false)
	if err == nil || err.Error() != syntax+"a a" {
		t.Errorf("the first of several errors is %v", err)
	}
	if _, err := New(map[string]string{"a b": "none"}, false); err != nil {
		t.Errorf("a rule that says nothing is looked at: %v", err)
	}
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		rules   map[string]string
		localOK bool
		want    map[string]string
	}{
		{nil, false, map[string]string{"a.example": NotAllowed, "localhost": NotAllowedLocal, "127.0.0.1": NotAllowedLocal, "x.localhost": NotAllowed, "8.8.8.8": NotAllowed}},
		{nil, true, map[string]string{"127.0.0.1": NotAllowed, "localhost": NotAllowed}},
		{map[string]string{"*.a.example": "allow"}, false, map[string]string{"a.example": NotAllowed, "x.a.example": Allowed, "x.y.a.example": Allowed, "ba.example": NotAllowed}},
		{map[string]string{"**.a.example": "allow"}, false, map[string]string{"a.example": Allowed, "x.a.example": Allowed, "ba.example": NotAllowed}},
		{map[string]string{"a.example": "none"}, false, map[string]string{"a.example": NotAllowed}},
		{map[string]string{"*": "allow", "A.Example.": "deny"}, false, map[string]string{"a.example": Denied, "A.EXAMPLE.": Denied, "b.example": Allowed, "127.0.0.1": NotAllowedLocal, "localhost": NotAllowedLocal, "8.8.8.8": Allowed}},
		{map[string]string{"*": "allow"}, true, map[string]string{"127.0.0.1": Allowed, "localhost": Allowed}},
		{map[string]string{"b?.example": "deny", "c*.example": "deny"}, false, map[string]string{"b1.example": Denied, "b.example": NotAllowed, "cxx.example": Denied, "c.x.example": Denied}},
		{map[string]string{"127.0.0.1": "deny"}, false, map[string]string{"127.0.0.1": Denied, "[::ffff:127.0.0.1]": Denied, "127.0.0.2": NotAllowedLocal}},
		{map[string]string{"127.0.0.1:9": "allow"}, false, map[string]string{"127.0.0.1": Allowed}},
		{map[string]string{"127.0.0.*": "allow"}, false, map[string]string{"127.0.0.1": NotAllowedLocal}},
		{map[string]string{"[::1]": "allow"}, false, map[string]string{"[::1]": Allowed, "[0:0:0:0:0:0:0:1]": Allowed, "::1": Allowed}},
		{map[string]string{"[::ffff:1.1.1.1]": "deny"}, false, map[string]string{"1.1.1.1": Denied}},
		{map[string]string{"localhost": "allow"}, false, map[string]string{"localhost": Allowed, "LOCALHOST.": Allowed, "127.0.0.1": NotAllowedLocal}},
		{map[string]string{"**.localhost": "allow"}, false, map[string]string{"localhost": NotAllowedLocal, "x.localhost": Allowed}},
		{map[string]string{"*.*": "deny"}, false, map[string]string{"a.b": Denied, "a": NotAllowed, "1.1.1.1": Denied, "[::ffff:1.1.1.1]": Denied}},
		{map[string]string{"1.1.1.1": "allow", "10.0.0.1": "allow"}, false, map[string]string{"1.1.1.1": Allowed, "10.0.0.1": Allowed, "1.1.1.1.": Allowed}},
	} {
		p, err := New(c.rules, c.localOK)
		if err != nil {
			t.Fatal(err)
		}
		for host, want := range c.want {
			h, ok := ParseHost(host)
			if !ok {
				t.Fatalf("%s is no host", host)
			}
			if got, _ := p.Check(h); got != want {
				t.Errorf("%v, local %v: %s is %s, want %s", c.rules, c.localOK, host, got, want)
			}
		}
	}
}

func TestWhatANameResolvesTo(t *testing.T) {
	addrs := func(list ...string) (all []netip.Addr) {
		for _, s := range list {
			all = append(all, netip.MustParseAddr(s))
		}
		return all
	}
	for _, c := range []struct {
		rules   map[string]string
		localOK bool
		addrs   []netip.Addr
		want    string
	}{
		{nil, false, addrs("1.1.1.1", "2606:4700::1"), Allowed},
		{nil, false, addrs(), NotAllowedLocal},
		{nil, false, addrs("1.1.1.1", "127.0.0.1"), NotAllowedLocal},
		{nil, false, addrs("::ffff:10.0.0.1"), NotAllowedLocal},
		{nil, true, addrs("127.0.0.1"), Allowed},
		{nil, true, addrs(), Allowed},
		{map[string]string{"169.254.169.254": "deny"}, true, addrs("169.254.169.254"), Denied},
	} {
		p, err := New(c.rules, c.localOK)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Resolved(c.addrs); got != c.want {
			t.Errorf("%v, local %v: %v is %s, want %s", c.rules, c.localOK, c.addrs, got, c.want)
		}
	}
}

func TestHosts(t *testing.T) {
	for s, want := range map[string]string{
		"A.Example.": "a.example", "[::1]": "::1", "[0:0::1]": "::1", "a_b-c.example": "a_b-c.example", "1.1.1.1.": "1.1.1.1", "[::ffff:1.1.1.1]": "::ffff:1.1.1.1",
	} {
		if h, ok := ParseHost(s); !ok || h.String() != want {
			t.Errorf("%q is %q, %v", s, h, ok)
		}
	}
	for _, s := range []string{
		"", ".", "..", "a..b", ".a", "a..", "[a]", "[::1", "::1]", "[1.1.1.1]", "a b", "a\x00b", "u@a", "a/b", "a:1", "é", "fe80::1%eth0", "[fe80::1%25eth0]",
		strings.Repeat("a", maxHost+1),
	} {
		if h, ok := ParseHost(s); ok {
			t.Errorf("%q is the host %q", s, h)
		}
	}
}

// A host that has been read reads the same again, and is never one of which a
// resolver or a message could make something else.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"a.example", "[::1]", "1.1.1.1.", "fe80::1%eth0", "x:1", "[", "0x7f.1"} {
		f.Add(s, "*.example")
	}
	f.Fuzz(func(t *testing.T, s, rule string) {
		h, ok := ParseHost(s)
		if !ok {
			return
		}
		again, ok := ParseHost(h.String())
		if !ok || again != h {
			t.Fatalf("%q reads as %q, which reads as %q, %v", s, h, again, ok)
		}
		if strings.ContainsAny(h.String(), "\x00\r\n \t/@%?#[]") {
			t.Fatalf("%q is the host %q", s, h)
		}
		if p, err := New(map[string]string{rule: "deny"}, false); err == nil {
			p.Check(h)
			if p, err = New(map[string]string{h.String(): "deny"}, false); err != nil {
				t.Fatalf("%q cannot be denied: %v", h, err)
			}
			if reason, _ := p.Check(h); reason != Denied {
				t.Fatalf("%q is denied, but %s", h, reason)
			}
		}
	})
}

func TestGlobTakesNoLong(t *testing.T) {
	if glob(strings.Repeat("*a", 500)+"b", strings.Repeat("a", 253)) {
		t.Error("it matches")
	}
}
