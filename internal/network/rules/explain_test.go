package rules

import (
	"net/netip"
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
there is no address to connect to`},
		{Question{Host: "a b", Port: 443}, `
denied: "a b" is neither a name nor an address`},
	} {
		if got := "\n" + strings.Join(table.Explain(c.ask), "\n"); got != c.want {
			t.Errorf("%+v:%s\nwant%s", c.ask, got, c.want)
		}
	}
	none := compile(t, Policy{Mode: None, Rules: []Rule{{Allow: []string{"*"}}}})
	if got := none.Explain(Question{Host: "1.1.1.1", Port: 1}); len(got) != 1 || !strings.HasPrefix(got[0], "denied") {
		t.Error(got)
	}
}
