package transport

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestParseListen(t *testing.T) {
	for url, want := range map[string]string{
		"ws://127.0.0.1:0": "127.0.0.1:0", "ws://0.0.0.0:80": "0.0.0.0:80", "ws://[::1]:65535": "[::1]:65535", "ws://[::]:1": "[::]:1",
	} {
		if got, err := ParseListen(url); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v", url, got, err)
		}
	}
	for _, url := range []string{
		"ws://", "ws://localhost:0", "ws://127.0.0.1", "ws://127.0.0.1:", "ws://127.0.0.1:0/", "ws://127.0.0.1:0/x", "ws://127.0.0.1:65536", "ws://127.0.0.1:-1",
		"ws://::1:5", "ws://[127.0.0.1]:5", "ws://127.0.0.1:5?x", "ws://127.0.0.1:5#x", "ws://u@127.0.0.1:5", "ws://127.0.0.1:x", "ws:// 127.0.0.1:5", "ws://127.1:5",
	} {
		want := "invalid websocket --listen URL `" + url + "`; expected `ws://IP:PORT`"
		if got, err := ParseListen(url); err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v", url, got, err)
		}
	}
	for _, url := range []string{"", "wss://127.0.0.1:0", "http://127.0.0.1:0", "127.0.0.1:0", "STDIO", "WS://127.0.0.1:0", "unix:///x", "stdio:"} {
		want := "unsupported --listen URL `" + url + "`; expected `ws://IP:PORT` or `stdio`"
		if got, err := ParseListen(url); err == nil || err.Error() != want || IsStdio(url) {
			t.Errorf("%s: %v, %v", url, got, err)
		}
	}
	if !IsStdio("stdio") || !IsStdio("stdio://") {
		t.Error("stdio is not known")
	}
}

func TestListenTellsItsPort(t *testing.T) {
	l := listen(t, echo)
	addr, err := ParseListen(l.URL())
	if err != nil || addr.Port() == 0 {
		t.Fatalf("the URL is %s: %v", l.URL(), err)
	}
	if _, err := Listen(addr, nil); err == nil || !strings.Contains(err.Error(), addr.String()) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second listener on the same port: %v", err)
	}
}

func TestManyConnectionsAtOnce(t *testing.T) {
	l := listen(t, echo)
	var all []*socket
	for range 50 {
		all = append(all, dialWS(t, l, "/"))
	}
	for i, s := range all {
		s.send(text, strings.Repeat("x", i))
	}
	for i, s := range all {
		s.expect(text, strings.Repeat("x", i))
	}
}

// A peer that does not read must not hold up anybody else.
func TestASlowPeerHoldsUpNobodyElse(t *testing.T) {
	l := listen(t, echo)
	slow := dialWS(t, l, "/")
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		for range 1000 { // far more than sockets hold
			if _, err := slow.Write(frame(text, make([]byte, 1<<20))); err != nil {
				return
			}
		}
	}()
	for range 100 {
		s := dialWS(t, l, "/")
		s.send(text, "quick")
		s.expect(text, "quick")
	}
	_ = slow.Close()
	<-blocked
}

func TestCloseEndsConnections(t *testing.T) {
	ended := make(chan struct{})
	l := listen(t, func(ctx context.Context, c proto.Conn, _, _ string) {
		defer close(ended)
		if _, err := c.ReadFrame(); err == nil {
			t.Error("it read something")
		}
		<-ctx.Done()
	})
	s := dialWS(t, l, "/")
	l.Close()
	s.dropped()
	<-ended
	if c, err := net.Dial("tcp", s.RemoteAddr().String()); err == nil {
		_ = c.Close()
		t.Error("it listens still")
	}
}

func TestCloseMayComeBeforeServe(t *testing.T) {
	l, err := Listen(netip.MustParseAddrPort("127.0.0.1:0"), nil)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := l.Serve(context.Background(), echo); err != nil {
		t.Error(err)
	}
	l.Close()
}

func TestPingsGoOutEvery30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			keepalive(ctx, theirs)
			close(done)
		}()
		begun := time.Now()
		for i := range 3 {
			var got [2]byte
			if _, err := io.ReadFull(ours, got[:]); err != nil || got != [2]byte{ping, 0} {
				t.Fatalf("% x, %v", got, err)
			}
			if passed, want := time.Since(begun), time.Duration(i+1)*30*time.Second; passed != want {
				t.Errorf("ping %d comes after %v", i+1, passed)
			}
		}
		cancel()
		<-done
	})
}

func TestPingsEndWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		_ = ours.Close()
		keepalive(t.Context(), theirs)
	})
}

// IPv4 means IPv4: nobody asked to be reached in another way.
func TestWhereItListens(t *testing.T) {
	for addr, urls := range map[string]string{"0.0.0.0:0": "ws://0.0.0.0:", "127.0.0.1:0": "ws://127.0.0.1:", "[::]:0": "ws://[::]:"} {
		l, err := Listen(netip.MustParseAddrPort(addr), nil)
		if err != nil {
			t.Errorf("%s: %v", addr, err)
			continue
		}
		if !strings.HasPrefix(l.URL(), urls) {
			t.Errorf("%s: %s", addr, l.URL())
		}
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(l.URL(), "ws://"))
		c, err := net.Dial("tcp6", "[::1]:"+port)
		if err == nil {
			_ = c.Close()
		}
		if (err == nil) != (addr == "[::]:0") {
			t.Errorf("%s by IPv6: %v", addr, err)
		}
		l.Close()
	}
}
