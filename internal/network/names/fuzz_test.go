package names

import (
	"context"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// FuzzQuery has programs send anything. The answer is one to the question, and fits;
// upstream hears of allowed names only.
func FuzzQuery(f *testing.F) {
	for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypePTR, dns.TypeTXT, dns.TypeANY, dns.TypeHTTPS} {
		for _, name := range []string{"a.example.com.", "example.net.", `a\.example.com.`, "1.0.0.10.in-addr.arpa.", "localhost."} {
			m := new(dns.Msg).SetQuestion(name, qtype).SetEdns0(4096, true)
			b, err := m.Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b, true)
		}
	}
	u, _ := faked(nil)
	var asked atomic.Pointer[string]
	u.exchange = func(_ context.Context, _ netip.AddrPort, q *dns.Msg, _ bool) (*dns.Msg, error) {
		name := dns.CanonicalName(q.Question[0].Name)
		asked.Store(&name)
		m := new(dns.Msg).SetReply(q)
		for range 100 {
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: []byte{151, 101, 1, 1}},
				&dns.TXT{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{"something long enough"}})
		}
		return m, nil
	}
	e := newEnvironment(f, u, allowing("*.example.com"))
	f.Fuzz(func(t *testing.T, message []byte, datagram bool) {
		asked.Store(nil)
		b := e.reply(t.Context(), message, datagram)
		if name := asked.Load(); name != nil && !strings.HasSuffix(*name, ".example.com.") {
			t.Fatalf("asked for %q", *name)
		}
		for _, ev := range e.took() {
			if len(ev.Name) > 4*255 || strings.ContainsFunc(ev.Name, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("reported %q", ev.Name)
			}
		}
		if b == nil {
			return
		}
		var m dns.Msg
		if err := m.Unpack(b); err != nil || !m.Response || b[0] != message[0] || b[1] != message[1] {
			t.Fatalf("%v: %x", err, b)
		}
		if datagram && len(b) > maxDatagram {
			t.Errorf("%d bytes", len(b))
		}
		if len(m.Question) > 1 {
			t.Errorf("%d questions", len(m.Question))
		}
	})
}

// FuzzReply has a server say anything. What is pinned is within its bounds and no
// special address, and what a program gets can be read.
func FuzzReply(f *testing.F) {
	for _, records := range [][]string{
		{"a.example.com. 60 A 151.101.1.1", "a.example.com. 60 A 10.0.0.1", "a.example.com. 60 AAAA 2a04::1"},
		{"a.example.com. 0 CNAME b.example.com.", "b.example.com. 1 CNAME a.example.com.", "b.example.com. 60 AAAA ::1"},
		{`a.example.com. 60 TXT "x" "y"`, "a.example.com. 60 MX 10 b.example.com.", "a.example.com. 60 NAPTR 1 2 \"u\" \"s\" \"!a!b!\" ."},
	} {
		m := new(dns.Msg).SetQuestion("a.example.com.", dns.TypeA)
		m.Response = true
		for _, s := range records {
			rr, err := dns.NewRR(s)
			if err != nil {
				f.Fatal(err)
			}
			m.Answer = append(m.Answer, rr)
			m.Ns = append(m.Ns, &dns.SOA{Hdr: dns.RR_Header{Name: "com.", Rrtype: dns.TypeSOA, Class: 1, Ttl: 9}, Ns: ".", Mbox: ".", Minttl: 7})
		}
		b, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint16(0))
		f.Add(b, uint16(1))
		f.Add(b, uint16(2))
	}
	types := []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT, dns.TypeMX, dns.TypeNAPTR, dns.TypeCNAME, dns.TypeSOA, dns.TypeDNSKEY}
	f.Fuzz(func(t *testing.T, message []byte, which uint16) {
		var m dns.Msg
		if m.Unpack(message) != nil {
			return
		}
		q := question("a.example.com", types[int(which)%len(types)])
		_ = check(&m, q, true)
		u, _ := faked(nil)
		u.exchange = func(context.Context, netip.AddrPort, *dns.Msg, bool) (*dns.Msg, error) { return &m, nil }
		e := newEnvironment(t, u, rules.Policy{Mode: rules.Open})
		b, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var got dns.Msg
		if err := got.Unpack(e.reply(t.Context(), b, false)); err != nil || got.Id != q.Id {
			t.Fatal(err)
		}
		for _, rr := range got.Answer {
			if h := rr.Header(); h.Rrtype != q.Question[0].Qtype || h.Class != dns.ClassINET || h.Name != q.Question[0].Name || h.Ttl > 3600 {
				t.Errorf("%v", rr)
			}
		}
		if len(e.pins.holders) > maxAddrs {
			t.Errorf("%d addresses", len(e.pins.holders))
		}
		for a := range e.pins.holders {
			if d := e.table.Load().Answer("a.example.com", a, false); d.Verdict != rules.Allow || a.Is4In6() || a.Is6() != (q.Question[0].Qtype == dns.TypeAAAA) {
				t.Errorf("%s is pinned", a)
			}
		}
		e.pins.verify(t)
	})
}
