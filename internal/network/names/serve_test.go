package names

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

func TestMalformedMessages(t *testing.T) {
	z := newZone(t)
	e := newEnvironment(t, upstream(t, z), allowing("a.example.com"))
	const none = -1
	ask := func(change func(*dns.Msg)) []byte {
		q := new(dns.Msg).SetQuestion("a.example.com.", dns.TypeHTTPS)
		change(q)
		b, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	rr, err := dns.NewRR("a.example.com. 60 A 192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		message []byte
		rcode   int
	}{
		"good":          {ask(func(*dns.Msg) {}), dns.RcodeSuccess},
		"empty":         {nil, none},
		"short":         {make([]byte, 11), none},
		"header":        {make([]byte, 12), dns.RcodeFormatError},
		"cut":           {ask(func(*dns.Msg) {})[:20], dns.RcodeFormatError},
		"an answer":     {ask(func(q *dns.Msg) { q.Response = true }), none},
		"two questions": {ask(func(q *dns.Msg) { q.Question = append(q.Question, q.Question[0]) }), dns.RcodeFormatError},
		"with answers":  {ask(func(q *dns.Msg) { q.Answer = []dns.RR{rr} }), dns.RcodeFormatError},
		"update":        {ask(func(q *dns.Msg) { q.Opcode = dns.OpcodeUpdate }), dns.RcodeNotImplemented},
		"notify":        {ask(func(q *dns.Msg) { q.Opcode = dns.OpcodeNotify }), dns.RcodeNotImplemented},
		"EDNS 1":        {ask(func(q *dns.Msg) { q.SetEdns0(1232, false).IsEdns0().SetVersion(1) }), dns.RcodeBadVers},
		"EDNS twice":    {ask(func(q *dns.Msg) { q.SetEdns0(1232, false).SetEdns0(1232, false) }), dns.RcodeFormatError},
	} {
		b := e.reply(t.Context(), c.message, true)
		if b == nil {
			if c.rcode != none {
				t.Errorf("%s: no answer", what)
			}
			continue
		}
		var m dns.Msg
		if err := m.Unpack(b); err != nil || m.Rcode != c.rcode || !m.Response {
			t.Errorf("%s: %v, %v", what, err, &m)
		}
	}
}

func TestTooManyDatagrams(t *testing.T) {
	e := newEnvironment(t, upstream(t, newZone(t, "a.example.com. 60 A 151.101.1.1")), allowing("a.example.com")).serve()
	for range maxWorkers {
		e.workers <- struct{}{}
	}
	if m := e.query("a.example.com", dns.TypeA); m.Rcode != dns.RcodeServerFailure || !m.RecursionDesired || !m.RecursionAvailable {
		t.Errorf("%v", m)
	}
	<-e.workers
	if m := e.query("a.example.com", dns.TypeA); len(m.Answer) != 1 {
		t.Errorf("%v", m)
	}
	if ev := e.took(); len(ev) != 2 || ev[0].Kind != Failed || ev[0].Name != "a.example.com" || ev[0].Err == nil {
		t.Errorf("%+v", ev)
	}
	if e.busy(nil) != nil || e.busy(make([]byte, 11)) != nil || e.busy([]byte{0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0}) != nil {
		t.Error("answered what is no question")
	}
}

// Who has many questions on their way leaves some for those who have few.
func TestQuestionsOfAll(t *testing.T) {
	u := upstream(t, newZone(t, "a.example.com. 60 A 151.101.1.1"))
	e, other := newEnvironment(t, u, allowing("a.example.com")), newEnvironment(t, u, allowing("a.example.com"))
	for range maxFlights - 8 {
		u.slots <- struct{}{}
	}
	for range 8 {
		e.asking <- struct{}{}
	}
	if _, err := e.lookup(t.Context(), "a.example.com", false); err != errBusy {
		t.Errorf("one more of many: %v", err)
	}
	if _, err := other.lookup(t.Context(), "a.example.com", false); err != nil {
		t.Errorf("one of few: %v", err)
	}
	<-e.asking
	if _, err := e.lookup(t.Context(), "a.example.com", false); err != nil {
		t.Errorf("when there are fewer: %v", err)
	}
}

func TestTooManyConnections(t *testing.T) {
	e := newEnvironment(t, upstream(t, newZone(t)), allowing("a.example.com")).serve()
	var conns []net.Conn
	for range maxConns + 1 {
		c, err := net.Dial("tcp", e.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		conns = append(conns, c)
	}
	if _, err := conns[maxConns].Read(make([]byte, 1)); err == nil {
		t.Error("one more is kept")
	}
	// Several questions in one go, of which the last is too long.
	q, err := new(dns.Msg).SetQuestion("b.example.com.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := writeMessage(conns[0], q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conns[0].Write([]byte{0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if b, err := readMessage(conns[0], maxQuery); err != nil || b[3]&0xf != dns.RcodeNameError {
			t.Errorf("%x, %v", b, err)
		}
	}
	if _, err := conns[0].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after what is too long: %v", err)
	}
}

func TestServeEnds(t *testing.T) {
	blocked := make(chan struct{}, 1)
	u, _ := faked(nil)
	u.exchange = func(ctx context.Context, _ netip.AddrPort, _ *dns.Msg, _ bool) (*dns.Msg, error) {
		blocked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	u.servers = func() ([]netip.AddrPort, error) { return []netip.AddrPort{{}}, nil }
	e := newEnvironment(t, u, allowing("a.example.com"))
	// With a question that nobody answers, and a connection that says nothing.
	pc, l := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, pc, l) }()
	idle, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	q, _ := new(dns.Msg).SetQuestion("a.example.com.", dns.TypeA).Pack()
	if err := writeMessage(c, q); err != nil {
		t.Fatal(err)
	}
	<-blocked
	cancel()
	if err := <-done; err != nil {
		t.Errorf("%v", err)
	}
	// What somebody else closes is an error, and ends both.
	pc, l = listen(t)
	go func() { done <- e.Serve(t.Context(), pc, l) }()
	_ = pc.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
