package testnet

import (
	"fmt"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// ask is a query from the host.
func ask(t *testing.T, n *Internet, network, name string, kind uint16) *dns.Msg {
	t.Helper()
	c, err := n.Host.DialContext(t.Context(), network, Resolver.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	answer, _, err := (&dns.Client{Net: network}).ExchangeWithConn(m, &dns.Conn{Conn: c})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func addressesOf(m *dns.Msg) (all []string) {
	for _, rr := range m.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			all = append(all, rr.A.String())
		case *dns.AAAA:
			all = append(all, rr.AAAA.String())
		case *dns.CNAME:
			all = append(all, rr.Target)
		}
	}
	return all
}

func TestNames(t *testing.T) {
	n := New(t)
	n.DNS.Set("web.test", time.Minute, Web.String(), Web6.String())
	n.DNS.Set("alias.test", 0, "Web.test")
	n.DNS.Set("*.wild.test", 0, "1.1.1.1")
	n.DNS.Flip("flip.test", time.Second, []string{Web.String()}, []string{"127.0.0.1", "::1"})
	n.DNS.Handle("fails.test", func(w dns.ResponseWriter, r *dns.Msg) {
		_ = w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeServerFailure))
	})
	if err := n.DNS.Add("web.test. 60 IN TXT words"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		network, name string
		kind          uint16
		want          string
	}{
		{"udp", "web.test", dns.TypeA, "NOERROR [93.184.216.34]"},
		{"tcp", "WEB.test", dns.TypeA, "NOERROR [93.184.216.34]"},
		{"udp", "web.test", dns.TypeAAAA, "NOERROR [2606:4700::1111]"},
		{"udp", "web.test", dns.TypeHTTPS, "NOERROR []"},
		{"udp", "alias.test", dns.TypeA, "NOERROR [Web.test. 93.184.216.34]"},
		{"udp", "a.b.wild.test", dns.TypeA, "NOERROR [1.1.1.1]"},
		{"udp", "flip.test", dns.TypeA, "NOERROR [93.184.216.34]"},
		{"udp", "flip.test", dns.TypeAAAA, "NOERROR []"},
		{"udp", "flip.test", dns.TypeA, "NOERROR [127.0.0.1]"},
		{"udp", "flip.test", dns.TypeAAAA, "NOERROR [::1]"},
		{"udp", "flip.test", dns.TypeA, "NOERROR [127.0.0.1]"},
		{"udp", "fails.test", dns.TypeA, "SERVFAIL []"},
		{"udp", "none.test", dns.TypeA, "NXDOMAIN []"},
	} {
		m := ask(t, n, tt.network, tt.name, tt.kind)
		if got := fmt.Sprint(dns.RcodeToString[m.Rcode], " ", addressesOf(m)); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.name, dns.Type(tt.kind), got, tt.want)
		}
	}
	if m := ask(t, n, "udp", "web.test", dns.TypeTXT); len(m.Answer) != 1 {
		t.Errorf("the record that was added: %v", m)
	}
	if got := n.DNS.Count("web.TEST"); got != 5 {
		t.Errorf("web.test was asked for %d times, want 5", got)
	}
	if q := n.DNS.Queries()[1]; q.Name != "WEB.test" || q.Type != "A" || q.Network != "tcp" || q.From.Addr() != Host {
		t.Errorf("the second query is %+v", q)
	}
}
