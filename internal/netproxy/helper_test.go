package netproxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/address"
	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

// patience is what a test waits for something that has to come.
const patience = 20 * time.Second

// rig is a proxy with a network of its own: names that resolve to what the test
// says, and connections to public addresses that end at its origin.
type rig struct {
	t       *testing.T
	p       *Proxy
	web     string // address of the HTTP listener
	socks   string
	origin  string // where a connection to any public address ends
	names   map[string][]string
	dialed  []string // guarded by mu
	decided []string // guarded by mu
	asked   []string // guarded by mu
	answer  policy.Answer
	mu      sync.Mutex
}

func start(t *testing.T, c policy.Config) *rig {
	t.Helper()
	r := &rig{t: t, names: map[string][]string{
		"pub.example": {"1.1.1.1"}, "loc.example": {"127.0.0.1"}, "mixed.example": {"1.1.1.1", "10.0.0.1"}, "localhost": {"127.0.0.1", "::1"},
	}, answer: policy.NoAnswer}
	var ask func(context.Context, policy.Target) policy.Answer
	if c.Ask {
		ask = func(_ context.Context, target policy.Target) policy.Answer {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.asked = append(r.asked, target.Protocol+" "+target.Host)
			return r.answer
		}
	}
	p, err := New(&c, r.report, ask)
	if err != nil {
		t.Fatal(err)
	}
	r.p = p
	p.resolve = func(_ context.Context, name string) (all []netip.Addr, err error) {
		for _, addr := range r.names[name] {
			all = append(all, netip.MustParseAddr(addr))
		}
		if all == nil {
			err = errors.New("no such host")
		}
		return all, err
	}
	p.dialer = func(ctx context.Context, network, target string) (net.Conn, error) {
		r.mu.Lock()
		r.dialed = append(r.dialed, target)
		r.mu.Unlock()
		if at := netip.MustParseAddrPort(target); address.IsPublic(at.Addr()) {
			target = r.origin
		}
		return (&net.Dialer{}).DialContext(ctx, network, target)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	t.Cleanup(func() { cancel(); served.Wait() })
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	web := listen()
	r.web = web.Addr().String()
	served.Go(func() { _ = p.serveHTTP(ctx, web) })
	if c.SOCKS {
		var datagrams *relay
		if c.UDP {
			conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			datagrams = newRelay(p, conn)
			served.Go(func() { _ = datagrams.serve(ctx) })
		}
		l := listen()
		r.socks = l.Addr().String()
		served.Go(func() { _ = p.serveSOCKS(ctx, l, datagrams) })
	}
	return r
}

func (r *rig) report(d *policy.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := strings.Join([]string{d.Scope, d.Verdict, d.Source, d.Reason, d.Protocol, d.Host, d.Method}, " ")
	if d.Override {
		line += " override"
	}
	r.decided = append(r.decided, strings.TrimSpace(line))
}

// expect checks what was decided since it was last called.
func (r *rig) expect(want ...string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := strings.Join(r.decided, "\n"); got != strings.Join(want, "\n") {
		r.t.Errorf("decided\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	r.decided = nil
}

// serveOrigin is an HTTP server that stands for the public network.
func (r *rig) serveOrigin(h http.HandlerFunc) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: patience}
	go func() { _ = s.Serve(l) }()
	r.t.Cleanup(func() { _ = s.Close() })
	r.origin = l.Addr().String()
}

// echo makes the origin send back what it gets, until that ends.
func (r *rig) echo() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = l.Close() })
	r.origin = l.Addr().String()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
}

// client is a raw connection to one of the listeners.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (r *rig) dial(address string) *client {
	r.t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	r.t.Cleanup(func() { _ = conn.Close() })
	return &client{t: r.t, Conn: conn, r: bufio.NewReader(conn)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads the answer to a request with that method.
func (c *client) answer(method string) (*http.Response, string) {
	c.t.Helper()
	res, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	_ = res.Body.Close()
	return res, string(body)
}

// ask sends one request on a connection of its own and reads the answer.
func (r *rig) ask(method, target, head, body string) (*http.Response, string) {
	r.t.Helper()
	c := r.dial(r.web)
	c.send(method + " " + target + " HTTP/1.1\r\n" + head + "\r\n" + body)
	return c.answer(method)
}
