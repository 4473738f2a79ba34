package e2e

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/exec-server/exec-server/internal/network/testnet"
)

// ask is a question as escape's way query has it, changed by f if that is not nil.
func ask(t *testing.T, name string, kind uint16, f func(*dns.Msg)) string {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, kind)
	if f != nil {
		f(m)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(b)
}

// saying is a sandbox in which web.example is allowed and other.example, on the same
// address, is not.
func saying(t *testing.T) (*testnet.Internet, *root, *server, *harness) {
	n, config := newInternet(t)
	n.DNS.Set("other.example", time.Minute, testnet.Web.String())
	n.DNS.Set("*.suffix.example", time.Minute, testnet.Web.String())
	for name, to := range map[string]string{
		"local": "127.0.0.1", "zero": "0.0.0.0", "lan": testnet.Gateway.String(), "host": testnet.HostPublic.String(),
		"metadata": "169.254.169.254", "alias": "metadata.suffix.example", "inner": "localhost",
		"mapped": "::ffff:169.254.169.254", "nat64": "64:ff9b::a9fe:a9fe", "nat64host": "64:ff9b::84.32.10.2", "ula": "fd00:ec2::254", "one": "::1",
	} {
		n.DNS.Set(name+".suffix.example", time.Second, to)
	}
	r := newRoot(t, config+profile+"[profile.default.network]\nmode = \"rules\"\n"+
		"[[profile.default.network.rule]]\nallow = [\"web.example\", \"*.suffix.example\"]\n")
	s := r.serveIn(n)
	h := s.connect("/", "")
	h.sh("visit http://web.example/") // so that its address is known
	return n, r, s, h
}

func TestEscapeByDNS(t *testing.T) {
	n, r, s, h := saying(t)
	came := hostServices(t, n, "80")
	packets := n.Capture(t)
	const secret = "c2VjcmV0.other.example."
	e := escapes{}
	for _, server := range []string{"192.0.0.1:53", "9.9.9.9:53", "93.184.216.34:53", "169.254.169.254:53", "10.99.0.2:53", "[fd65:7865:63::1]:53", "[2620:fe::9]:53", "192.0.0.1:63053"} {
		for _, tcp := range []string{"", " tcp"} {
			for _, kind := range []uint16{dns.TypeA, dns.TypeTXT, dns.TypeNULL, dns.TypeANY, dns.TypeHTTPS, dns.TypeMX, dns.TypePTR, dns.TypeSRV} {
				e["query "+server+" "+ask(t, secret, kind, nil)+tcp] = "rcode [1-5]|connection refused|EOF|connection reset by peer"
			}
		}
	}
	odd := func(name string, kind uint16, f func(*dns.Msg)) {
		e["query 192.0.0.1:53 "+ask(t, name, kind, f)] = "rcode [1-5]|no answer|i/o timeout"
		e["query 192.0.0.1:53 "+ask(t, name, kind, f)+" tcp"] = "rcode [1-5]|no answer|EOF|connection reset by peer"
	}
	for _, name := range []string{
		"OTHER.example.", "other.example.web.example.", "web.example.other.example.", "xweb.example.", "suffix.example.", "web\\.example.", "a\\000b.suffix.example.", "a\\032b.suffix.example.",
		"web.example\\000.other.example.", "2852039166.", "0xa9fea9fe.", "0xa9.0xfe.0xa9.0xfe.", "169.254.169.254.", "0251.0376.0251.0376.", ".", "com.", "metadata.google.internal.",
		"254.169.254.169.in-addr.arpa.", "secret.in-addr.arpa.", "1.1.1.1.in-addr.arpa.",
	} {
		odd(name, dns.TypeA, nil)
		odd(name, dns.TypePTR, nil)
	}
	odd("web.example.", dns.TypeAXFR, nil)
	odd("web.example.", dns.TypeNULL, nil)
	odd("web.example.", dns.TypeHTTPS, nil)
	odd("web.example.", dns.TypeA, func(m *dns.Msg) { m.Question = append(m.Question, dns.Question{Name: secret, Qtype: 1, Qclass: 1}) })
	odd("web.example.", dns.TypeA, func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS })
	odd("web.example.", dns.TypeSOA, func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate })
	odd("web.example.", dns.TypeSOA, func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify })
	odd("web.example.", dns.TypeA, func(m *dns.Msg) { m.Response = true })
	odd("web.example.", dns.TypeA, func(m *dns.Msg) {
		m.Ns = append(m.Ns, &dns.NS{Hdr: dns.RR_Header{Name: secret, Rrtype: dns.TypeNS, Class: 1}, Ns: secret})
	})
	for _, name := range []string{"local", "zero", "lan", "host", "metadata", "alias", "inner", "mapped", "nat64", "nat64host", "ula", "one"} {
		for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
			e["query 192.0.0.1:53 "+ask(t, name+".suffix.example.", kind, nil)] = "no answer|rcode 3"
		}
	}
	// What is behind the question stays here.
	edns := func(m *dns.Msg) {
		m.SetEdns0(4096, true)
		o := m.IsEdns0()
		o.Option = append(o.Option, &dns.EDNS0_LOCAL{Code: 65001, Data: []byte("secret")}, &dns.EDNS0_NSID{Nsid: "736563726574"},
			&dns.EDNS0_COOKIE{Cookie: "7365637265747365"}, &dns.EDNS0_SUBNET{Family: 1, SourceNetmask: 32, Address: testnet.Web.AsSlice()})
		m.Id, m.Zero, m.AuthenticatedData, m.CheckingDisabled = 4711, true, true, true
	}
	asked := make(chan *dns.Msg, 16)
	n.DNS.Handle("told.suffix.example", func(w dns.ResponseWriter, r *dns.Msg) {
		asked <- r
		_ = w.WriteMsg(new(dns.Msg).SetReply(r))
	})
	e["query 192.0.0.1:53 "+ask(t, "told.suffix.example.", dns.TypeA, edns)] = "no answer"
	e.try(t, h, nil)
	nothingLeft(t, packets, testnet.Web) // the end of the connection from before
	for _, q := range n.DNS.Queries() {
		name := strings.ToLower(q.Name)
		if name != "web.example" && !strings.HasSuffix(name, ".suffix.example") || strings.Contains(name, "a\\") {
			t.Errorf("the name server was asked for %v", q)
		}
	}
	for range len(asked) {
		m := <-asked
		if o := m.IsEdns0(); m.Id == 4711 || m.Zero || m.AuthenticatedData || m.CheckingDisabled || o != nil && (len(o.Option) > 0 || o.Do()) {
			t.Errorf("the name server was asked %v", m)
		}
	}
	// What an address was an answer to does not count for one that was taken out.
	for _, name := range []string{"lan", "host", "metadata", "alias", "local", "nat64host"} {
		if got := h.sh("visit http://" + name + ".suffix.example/"); strings.HasSuffix(got, "}\nok") {
			t.Errorf("%s: %s", name, got)
		}
	}
	nothingLeft(t, packets, testnet.Web)
	// What is logged of it is short and printable.
	if log := s.logs.String(); len(log) > 64<<10 || strings.ContainsFunc(log, func(c rune) bool { return c < ' ' && c != '\n' || c > '~' }) {
		t.Errorf("the log has %d bytes, or what is not printable", len(log))
	}
	r.policy(0, "set", "--mode", "open")
	e = escapes{}
	for _, name := range []string{"254.169.254.169.in-addr.arpa.", "1.0.99.10.in-addr.arpa.", "2.10.32.84.in-addr.arpa.", "secret.in-addr.arpa.", "secret.ip6.arpa.", "in-addr.arpa."} {
		e["query 192.0.0.1:53 "+ask(t, name, dns.TypePTR, nil)] = "rcode 3"
	}
	e.try(t, h, nil)
	for _, q := range n.DNS.Queries() {
		if q.Type == "PTR" {
			t.Errorf("the name server was asked for %v", q)
		}
	}
	if came.Load() > 0 {
		t.Errorf("the host was reached %d times", came.Load())
	}
}
