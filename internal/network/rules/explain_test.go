package rules

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestX(t *testing.T) {
	table := compile(t, Policy{Mode: Rules, Rules: []Rule{
		{Allow: []string{"pypi.org", "*.pythonhosted.org"}}, {Deny: []string{"*.org"}}, {Allow: []string{"10.1.0.0/16"}, Ports: []Ports{{8000, 8100}}},
		{Allow: []string{"git.example"}, Ports: []Ports{{22, 22}}, Protocols: []Protocol{TCP}},
	}})
	for _, q := range []Question{
		{Host: "pypi.org", Port: 443, Addrs: []netip.Addr{netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("2606:4700::1"), netip.MustParseAddr("10.0.0.1")}},
		{Host: "evil.org", Port: 443},
		{Host: "10.1.2.3", Port: 8080},
		{Host: "10.1.2.3", Port: 80},
		{Host: "1.1.1.1", Port: 443, Names: []string{"pypi.org"}},
		{Host: "git.example", Port: 22, Addrs: []netip.Addr{netip.MustParseAddr("1.1.1.1")}},
		{Host: "169.254.169.254", Port: 80, Protocol: HTTP},
		{Host: "1.1.1.1", Port: 443, Protocol: UDP},
	} {
		fmt.Println("== " + q.Host)
		fmt.Println(strings.Join(table.Explain(q), "\n"))
	}
}
