package rules

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func addrs(list ...string) (all []netip.Addr) {
	for _, s := range list {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

// TestExplain has the lines as people read them.
func TestExplain(t *testing.T) {
	table := compile(t, Policy{Mode: Rules, Intercept: true, Rules: []Rule{
		{Allow: []string{"pypi.org", "*.pythonhosted.org"}},
		{Deny: []string{"*.org"}},
		{Allow: []string{"10.1.0.0/16"}, Ports: []Ports{{8000, 8100}}},
		{Allow: []string{"git.example"}, Ports: []Ports{{22, 22}}, Protocols: []Protocol{TCP}},
		{Allow: []string{"api.example"}, Credential: &Credential{SecretCommand: []string{"vault", "--token=secret"}}},
	}})
	for _, c := range []struct {
		ask  Question
		want string
	}{
		{Question{Host: "PyPI.org.", Port: 443, Addrs: addrs("1.1.1.1", "2606:4700::1", "10.0.0.1")}, `
look-up of pypi.org: allowed by rule 1
  2. exact name: rule 1 allows pypi.org, ports 80, 443, tls, http: this decides
answer 10.0.0.1: left out, it is private (10.0.0.0/8) (rebind)
tls, http to 1.1.1.1, 2606:4700::1, port 443: allowed by rule 1
  1. special address: no, it is public
  2. exact name: rule 1 allows pypi.org, ports 80, 443, tls, http: this decides
tcp to 1.1.1.1, 2606:4700::1, port 443: denied, the client has to say a name that is allowed (no-name)
  1. special address: no, it is public
  2. exact name: rule 1 allows pypi.org, ports 80, 443, tls, http: not for tcp
  3. prefix: no rule
  4. *.name: rule 2 denies *.org, all ports, all protocols: this decides`},
		{Question{Host: "evil.org", Port: 443}, `
look-up of evil.org: denied by rule 2
  2. exact name: no rule
  4. *.name: rule 2 denies *.org, all ports, all protocols: this decides`},
		{Question{Host: "10.1.2.3", Port: 8080}, `
tls, http, tcp to 10.1.2.3, port 8080: allowed by rule 3
  1. special address: it is private (10.0.0.0/8), and opened: rule 3 allows 10.1.0.0/16, ports 8000-8100, tcp
  2. exact name: no rule
  3. prefix: rule 3 allows 10.1.0.0/16, ports 8000-8100, tcp: this decides`},
		{Question{Host: "10.1.2.3", Port: 80, Protocol: HTTP}, `
http to 10.1.2.3, port 80: denied (private)
  1. special address: it is private (10.0.0.0/8), and no rule allows a prefix within 10.0.0.0/8 for this: this decides`},
		{Question{Host: "[fd00:ec2::254]", Port: 80, Protocol: HTTP}, `
http to fd00:ec2::254, port 80: denied (metadata)
  1. special address: it is metadata, and no rule allows that very address for this: this decides`},
		{Question{Host: "1.1.1.1", Port: 22, Protocol: TCP, Names: []string{"git.example"}}, `
tcp to 1.1.1.1, port 22: allowed by rule 4
  1. special address: no, it is public
  2. exact name: rule 4 allows git.example, ports 22, tcp: this decides`},
		{Question{Host: "1.1.1.1", Port: 443, Protocol: TLS, Names: []string{"api.example"}}, `
tls to 1.1.1.1, port 443: denied, the client has to say a name that is allowed (no-name)
  1. special address: no, it is public
  2. exact name: rule 5 allows api.example, ports 80, 443, tls with Authorization from program vault: the client has to say the name
  3. prefix: no rule
  4. *.name: no rule
  5. everything: no rule
  6. mode rules: denied: this decides`},
		{Question{Host: "1.1.1.1", Port: 443, Protocol: UDP}, `
udp to 1.1.1.1, port 443: denied, there is no path for it without veth = true`},
		{Question{Host: "pypi.org", Port: 443, Addrs: addrs("127.0.0.1"), Own: func(netip.Addr) bool { return true }}, `
look-up of pypi.org: allowed by rule 1
  2. exact name: rule 1 allows pypi.org, ports 80, 443, tls, http: this decides
answer 127.0.0.1: left out, it is loopback (127.0.0.0/8) (rebind)
denied (rebind): no answer is left to connect to, unless a rule allows its prefix`},
		{Question{Host: "api.example", Port: 443}, `
look-up of api.example: allowed by rule 5
  2. exact name: rule 5 allows api.example, ports 80, 443, tls with Authorization from program vault: this decides
there is no address to connect to`},
		{Question{Host: "a b", Port: 443}, `
denied: "a b" is neither a name nor an address`},
	} {
		if got := "\n" + strings.Join(table.Explain(c.ask).Lines, "\n"); got != c.want {
			t.Errorf("%+v:%s\nwant%s", c.ask, got, c.want)
		}
	}
	none := compile(t, Policy{Mode: None, Rules: []Rule{{Allow: []string{"*"}}}})
	if got := none.Explain(Question{Host: "1.1.1.1", Port: 1}); len(got.Lines) != 1 || !strings.HasPrefix(got.Lines[0], "denied") || got.Decision != "denied" || got.Reason != ByMode {
		t.Error(got)
	}
}

// What programs read of an explanation.
func TestFindings(t *testing.T) {
	table := compile(t, Policy{Mode: Rules, VEth: true, Rules: []Rule{
		{Deny: []string{"no.example"}},
		{Allow: []string{"a.example"}},
		{Allow: []string{"1.0.0.0/8"}, Protocols: []Protocol{ICMP}},
	}})
	lookup := Finding{Decision: "allowed", Reason: ByRule, Rule: 2, Lookup: "a.example"}
	web := Finding{Decision: "allowed", Reason: ByRule, Rule: 2, Protocols: []Protocol{TLS, HTTP}, Addrs: addrs("1.1.1.1")}
	tcp := Finding{Decision: "denied", Reason: NoName, Rule: 2, Protocols: []Protocol{TCP}, Addrs: addrs("1.1.1.1")}
	rebind := Finding{Decision: "denied", Reason: Rebound, Addrs: addrs("10.0.0.1")}
	denied := Finding{Decision: "denied", Reason: ByRule, Rule: 1, Lookup: "no.example"}
	unknown := Finding{Decision: "denied", Reason: ByMode, Lookup: "b.example"}
	ping := Finding{Decision: "allowed", Reason: ByRule, Rule: 3, Protocols: []Protocol{ICMP}, Addrs: addrs("1.1.1.1")}
	private := Finding{Decision: "denied", Reason: Private, Protocols: []Protocol{UDP}, Addrs: addrs("10.0.0.1")}
	for _, c := range []struct {
		target string
		app    Protocol
		addrs  []netip.Addr
		all    []Finding
		first  Finding
	}{
		{"a.example:443", "", addrs("10.0.0.1", "1.1.1.1"), []Finding{lookup, rebind, web, tcp}, web},
		{"a.example:443", TCP, addrs("1.1.1.1"), []Finding{lookup, tcp}, tcp},
		{"a.example:443", "", addrs("10.0.0.1"), []Finding{lookup, rebind}, rebind},
		{"a.example:443", "", nil, []Finding{lookup}, lookup},
		{"no.example:443", "", nil, []Finding{denied}, denied},
		{"b.example:443", "", nil, []Finding{unknown}, unknown},
		{"1.1.1.1", ICMP, nil, []Finding{ping}, ping},
		{"10.0.0.1:53", UDP, nil, []Finding{private}, private},
	} {
		q, err := Ask(c.target, c.app)
		if err != nil {
			t.Error(err)
		}
		q.Addrs = c.addrs
		if x := table.Explain(q); !reflect.DeepEqual(x.All, c.all) || !reflect.DeepEqual(x.Finding, c.first) {
			t.Errorf("%s: %+v,\nof %+v\nwant %+v\nof %+v", c.target, x.Finding, x.All, c.first, c.all)
		}
	}
	q, _ := Ask("1.1.1.1", ICMP)
	x := table.Explain(q)
	if x.Lines[0] != "icmp to 1.1.1.1: allowed by rule 3" {
		t.Error(x.Lines)
	}
	if x.Refuse(TooMuch, "full"); x.Decision != "denied" || x.Reason != TooMuch || len(x.All) != 2 || x.Lines[0] != "full" {
		t.Errorf("%+v", x)
	}
}

func TestAsk(t *testing.T) {
	for target, want := range map[string]Question{
		"a.example:443": {Host: "a.example", Port: 443}, "[::1]:80": {Host: "::1", Port: 80}, "1.1.1.1:65535": {Host: "1.1.1.1", Port: 65535},
	} {
		if q, err := Ask(target, ""); err != nil || q.Host != want.Host || q.Port != want.Port {
			t.Errorf("%s is %+v, %v", target, q, err)
		}
	}
	for target, host := range map[string]string{"a.example": "a.example", "a.example:7": "a.example", "::1": "::1", "[::1]": "[::1]", "1.1.1.1:0": "1.1.1.1"} {
		if q, err := Ask(target, ICMP); err != nil || q.Host != host || q.Port != 0 {
			t.Errorf("icmp to %s is %+v, %v", target, q, err)
		}
	}
	for target, want := range map[string]string{
		"github.com": `"github.com" has no port; write HOST:PORT, as in github.com:443`, "a:0": `"a:0": "0" is no port from 1 to 65535`, "a:https": `"https" is no port`,
		"a:65536": "is no port", "a:": `"" is no port`, "": "has no port", ":443": `"" is neither a name nor an address`, "bad_name!:443": `"bad_name!" is neither a name nor an address`,
		"https://a.example:443": "is a URL; write HOST:PORT", "2001:db8::1": "write an address of IPv6 as in [2001:db8::1]:443", "a:b:c": "is not HOST:PORT", "a b:1": "neither",
	} {
		if q, err := Ask(target, TLS); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v, and not %s", target, q, err, want)
		}
	}
	if _, err := Ask("a:1", "sctp"); err == nil || !strings.Contains(err.Error(), "is none of tcp") {
		t.Error(err)
	}
}
