package names

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// zone is an upstream server on loopback. It counts what reaches it.
type zone struct {
	t       testing.TB
	addr    netip.AddrPort
	queries atomic.Int64

	mu      sync.Mutex // guards what follows
	records []dns.RR
	seen    []*dns.Msg
	answer  func(w dns.ResponseWriter, q *dns.Msg) bool // true if it has answered
}

// listen returns sockets of one port, which both protocols have free.
func listen(t testing.TB) (net.PacketConn, net.Listener) {
	t.Helper()
	for {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", pc.LocalAddr().String())
		if err == nil {
			return pc, l
		}
		_ = pc.Close()
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
}

func newZone(t testing.TB, records ...string) *zone {
	t.Helper()
	z := &zone{t: t}
	z.set(records...)
	pc, l := listen(t)
	z.addr = netip.MustParseAddrPort(pc.LocalAddr().String())
	for _, s := range []*dns.Server{{PacketConn: pc, Handler: z}, {Listener: l, Handler: z}} {
		started := make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) }
		s.UDPSize = 4096
		go func() { _ = s.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	return z
}

func (z *zone) set(records ...string) {
	z.t.Helper()
	var rrs []dns.RR
	for _, s := range records {
		rr, err := dns.NewRR(s)
		if err != nil {
			z.t.Fatal(err)
		}
		rrs = append(rrs, rr)
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.records = rrs
}

// answers has the zone ask the function first.
func (z *zone) answers(f func(w dns.ResponseWriter, q *dns.Msg) bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.answer = f
}

func (z *zone) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	z.queries.Add(1)
	z.mu.Lock()
	z.seen = append(z.seen, q.Copy())
	answer := z.answer
	z.mu.Unlock()
	if answer != nil && answer(w, q) {
		return
	}
	m := z.reply(q)
	if w.LocalAddr().Network() == "udp" {
		m.Truncate(dns.MinMsgSize)
	}
	_ = w.WriteMsg(m)
}

// reply answers as a server does that knows the whole world.
func (z *zone) reply(q *dns.Msg) *dns.Msg {
	z.mu.Lock()
	defer z.mu.Unlock()
	m := new(dns.Msg).SetReply(q)
	m.RecursionAvailable = true
	name, exists := q.Question[0].Name, false
	for range 8 {
		next := ""
		for _, rr := range z.records {
			h := rr.Header()
			if !strings.EqualFold(h.Name, name) {
				continue
			}
			exists = true
			if c, ok := rr.(*dns.CNAME); ok {
				next = c.Target
			}
			if h.Rrtype == q.Question[0].Qtype || h.Rrtype == dns.TypeCNAME {
				m.Answer = append(m.Answer, rr)
			}
		}
		if name = next; name == "" {
			break
		}
	}
	if !exists {
		m.Rcode = dns.RcodeNameError
	}
	return m
}

// environment is the names of one, and what it reported.
type environment struct {
	*Names
	t     testing.TB
	addr  string
	table atomic.Pointer[rules.Table]

	mu     sync.Mutex // guards events
	events []Event
}

func newEnvironment(t testing.TB, u *Upstream, p rules.Policy) *environment {
	t.Helper()
	e := &environment{t: t}
	e.setPolicy(p)
	e.Names = New(Options{
		Table:    e.table.Load,
		Upstream: u,
		Own:      func(a netip.Addr) bool { return a == netip.MustParseAddr("198.100.0.7") },
		Report: func(ev Event) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.events = append(e.events, ev)
		},
	})
	return e
}

func (e *environment) setPolicy(p rules.Policy) {
	e.t.Helper()
	table, err := rules.Compile(p)
	if err != nil {
		e.t.Fatal(err)
	}
	e.table.Store(table)
}

// serve has the environment's server on loopback.
func (e *environment) serve() *environment {
	e.t.Helper()
	pc, l := listen(e.t)
	e.addr = pc.LocalAddr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, pc, l) }()
	e.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			e.t.Errorf("Serve: %v", err)
		}
	})
	return e
}

// took returns the events since the last time.
func (e *environment) took() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	events := e.events
	e.events = nil
	return events
}

// query asks the environment's server.
func (e *environment) query(name string, qtype uint16) *dns.Msg {
	e.t.Helper()
	return e.exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype), "udp")
}

func (e *environment) exchange(q *dns.Msg, network string) *dns.Msg {
	e.t.Helper()
	c := &dns.Client{Net: network, Timeout: time.Minute}
	m, _, err := c.Exchange(q, e.addr)
	if err != nil {
		e.t.Fatalf("%s: %v", q.Question[0].Name, err)
	}
	return m
}

// upstream returns one that asks the zones.
func upstream(t testing.TB, zones ...*zone) *Upstream {
	t.Helper()
	var servers []string
	for _, z := range zones {
		servers = append(servers, z.addr.String())
	}
	u, err := NewUpstream(servers)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// allowing is a policy that allows these.
func allowing(what ...string) rules.Policy {
	return rules.Policy{Mode: rules.Rules, Rules: []rules.Rule{{Allow: what}}}
}

// texts are an answer's records without their times to live.
func texts(m *dns.Msg) []string {
	all := []string{}
	for _, rr := range m.Answer {
		f := strings.Fields(rr.String())
		all = append(all, strings.Join(slices.Concat(f[:1], f[3:]), " "))
	}
	return all
}
