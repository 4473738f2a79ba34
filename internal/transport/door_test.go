package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/auth"
)

// Strangers that take their time make room for others; nobody inside does.
func TestStrangersMakeRoom(t *testing.T) {
	l := listen(t, echo)
	inside := dialWS(t, l, "/")
	var slow []*socket
	for range maxStrangers + 10 {
		s := dial(t, l)
		s.write([]byte("GET / HTTP/1.1\r\n"))
		slow = append(slow, s)
	}
	for range 20 { // they do not keep anybody out
		s := dialWS(t, l, "/")
		s.send(text, "in")
		s.expect(text, "in")
		_ = s.Close()
	}
	for i, s := range slow[:10] { // the ones that came first
		if _, err := s.r.ReadByte(); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("stranger %d: %v", i, err)
		}
	}
	last := slow[len(slow)-1]
	last.write([]byte(upgradeHeaders + "\r\n"))
	if head := last.head(); !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		t.Errorf("the last stranger is answered %q", head)
	}
	inside.send(text, "still here")
	inside.expect(text, "still here")
}

// tcp is one end of a connection.
func tcp(t *testing.T) (ours, theirs *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if theirs, err = net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr)); err != nil {
		t.Fatal(err)
	}
	if ours, err = l.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}

func TestTheDoorCounts(t *testing.T) {
	d := &door{}
	c, _ := tcp(t)
	var all []*wireConn
	for range maxConnections {
		w := &wireConn{TCPConn: c, door: d}
		d.arrive(w)
		if !d.admit(w) || d.admit(w) {
			t.Fatal("a stranger is admitted once")
		}
		all = append(all, w)
	}
	w := &wireConn{TCPConn: c, door: d}
	d.arrive(w)
	if d.admit(w) {
		t.Error("one too many is admitted")
	}
	d.leave(all[0])
	d.leave(all[0])
	if !d.admit(w) {
		t.Error("nobody is admitted after one has left")
	}
	for _, w := range append(all, w) {
		d.leave(w)
	}
	if d.admit(all[0]) || d.inside != 0 || d.strangers.Len() != 0 {
		t.Errorf("%d inside, %d strangers", d.inside, d.strangers.Len())
	}
}

// A stranger that does not finish its request is not waited for.
func TestARequestMustCome(t *testing.T) {
	l := listenAs(t, echo, func(l *Listener) { l.server.ReadTimeout = 50 * time.Millisecond })
	for _, request := range []string{"", "GET / HTT", "GET / HTTP/1.1\r\nHost: x\r\n", "GET /readyz HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx"} {
		s := dial(t, l)
		s.write([]byte(request))
		if _, err := io.ReadAll(s.r); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q: %v", request, err)
		}
	}
}

func TestTheTokenIsAskedForLast(t *testing.T) {
	path := t.TempDir() + "/token"
	if err := os.WriteFile(path, []byte("open-sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	guard, err := auth.Settings{Mode: auth.CapabilityToken, TokenFile: &path}.Open()
	if err != nil {
		t.Fatal(err)
	}
	l := listenAs(t, echo, func(l *Listener) { l.guard = guard })
	ws := upgradeHeaders
	for _, tt := range []struct{ request, status, body string }{
		{"GET / HTTP/1.1\r\n" + ws + "Authorization: Bearer open-sesame\r\n", "101", ""},
		{"GET /environments/x HTTP/1.1\r\n" + ws + "Authorization: bearer  open-sesame \r\n", "101", ""},
		{"GET / HTTP/1.1\r\n" + ws + "Authorization: Bearer open-sesame\r\nAuthorization: Bearer x\r\n", "101", ""},
		{"GET / HTTP/1.1\r\n" + ws + "Authorization: Bearer x\r\nAuthorization: Bearer open-sesame\r\n", "401", "invalid websocket bearer token"},
		{"GET /?token=open-sesame HTTP/1.1\r\n" + ws, "401", "missing websocket bearer token"},
		{"GET /environments/x HTTP/1.1\r\n" + ws, "401", "missing websocket bearer token"},
		{"GET / HTTP/1.1\r\n" + ws + "Authorization: \r\n", "401", "invalid authorization header"},
		{"GET / HTTP/1.1\r\n" + ws + "Authorization: Basic open-sesame\r\n", "401", "invalid authorization header"},
		{"GET / HTTP/1.1\r\n" + ws + "Origin: x\r\nAuthorization: Bearer open-sesame\r\n", "403", ""},
		{"GET /readyz HTTP/1.1\r\nHost: x\r\n", "200", ""},
		{"GET /nope HTTP/1.1\r\n" + ws, "404", ""},
		{"GET / HTTP/1.1\r\nHost: x\r\n", "400", "Connection header did not include 'upgrade'"},
		{"POST / HTTP/1.1\r\n" + ws, "405", "Request method must be `GET`"},
	} {
		s := dial(t, l)
		s.write([]byte(strings.Replace(tt.request, "Host: x", "Host: x\r\nX: "+tt.status, 1) + "\r\n"))
		head := s.head()
		body := make([]byte, len(tt.body))
		s.full(body)
		if !strings.HasPrefix(head, "HTTP/1.1 "+tt.status+" ") || string(body) != tt.body {
			t.Errorf("%q: %q %q", tt.request, head, body)
		}
		if tt.status == "401" && (!strings.Contains(head, "Content-Type: text/plain; charset=utf-8\r\n") || strings.Contains(strings.ToLower(head), "www-authenticate")) {
			t.Errorf("the refusal is %q", head)
		}
	}
}
