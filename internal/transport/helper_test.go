package transport

import (
	"bufio"
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// patience bounds every wait for something that has to come.
const patience = 20 * time.Second

// listen serves on a free port until the test ends.
func listen(t *testing.T, h Handler) *Listener {
	t.Helper()
	return listenAs(t, h, func(*Listener) {})
}

// listenAs changes something about the listener before it serves.
func listenAs(t *testing.T, h Handler, change func(*Listener)) *Listener {
	t.Helper()
	l, err := Listen(netip.MustParseAddrPort("127.0.0.1:0"), nil)
	if err != nil {
		t.Fatal(err)
	}
	change(l)
	served := make(chan error, 1)
	go func() { served <- l.Serve(context.Background(), h) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l
}

// echo sends every message back.
func echo(_ context.Context, c proto.Conn, _, _ string) {
	for {
		f, err := c.ReadFrame()
		if err != nil || c.WriteFrames(f) != nil {
			return
		}
	}
}

// socket is a raw connection to a listener.
type socket struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, l *Listener) *socket {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(l.URL(), "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &socket{t, c, bufio.NewReader(c)}
}

const upgradeHeaders = "Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// dialWS is a raw connection behind the upgrade.
func dialWS(t *testing.T, l *Listener, target string) *socket {
	t.Helper()
	s := dial(t, l)
	s.write([]byte("GET " + target + " HTTP/1.1\r\n" + upgradeHeaders + "\r\n"))
	if head := s.head(); !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		t.Fatalf("the upgrade is answered %q", head)
	}
	return s
}

// head reads an answer up to its empty line.
func (s *socket) head() (head string) {
	s.t.Helper()
	for !strings.HasSuffix(head, "\r\n\r\n") {
		line, err := s.r.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%v after %q", err, head)
		}
		head += line
	}
	return head
}

func (s *socket) write(data []byte) {
	s.t.Helper()
	if _, err := s.Write(data); err != nil {
		s.t.Fatal(err)
	}
}
