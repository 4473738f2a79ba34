package agent

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// harness is the other side of a connection to a server.
type harness struct {
	t       *testing.T
	server  *Server
	conn    proto.Conn
	id      string // of the session
	served  chan error
	answers chan string
	notes   chan string
	ended   chan struct{} // closed when the server has ended the connection
}

// connect lets a server serve a new connection.
func connect(t *testing.T, s *Server, hello proto.Hello) *harness {
	t.Helper()
	ours, theirs := net.Pipe()
	return connectOver(t, s, hello, proto.NewStreamConn(ours, proto.MaxAnswer), proto.NewStreamConn(theirs, proto.MaxRequest))
}

func connectOver(t *testing.T, s *Server, hello proto.Hello, ours, theirs proto.Conn) *harness {
	t.Helper()
	h := deaf(t, s, hello, ours, theirs)
	go h.read()
	return h
}

// deaf is a connection whose harness does not read.
func deaf(t *testing.T, s *Server, hello proto.Hello, ours, theirs proto.Conn) *harness {
	t.Helper()
	if hello.Peer == "" {
		hello.Peer = peerName
	}
	h := &harness{
		t: t, server: s, conn: ours, served: make(chan error, 1),
		answers: make(chan string, 1<<16), notes: make(chan string, 1<<16), ended: make(chan struct{}),
	}
	go func() { h.served <- s.Serve(theirs, hello) }()
	t.Cleanup(func() { _ = ours.Close() })
	return h
}

func (h *harness) read() {
	defer close(h.ended)
	for {
		f, err := h.conn.ReadFrame()
		if err != nil {
			return
		}
		if text := string(f.Body()); strings.HasPrefix(text, `{"method":`) {
			h.notes <- text
		} else {
			h.answers <- text
		}
	}
}

func (h *harness) send(format string, args ...any) {
	h.t.Helper()
	if err := h.conn.WriteFrames(proto.FrameOf(fmt.Appendf(nil, format, args...))); err != nil {
		h.t.Fatalf("send %s: %v", fmt.Sprintf(format, args...), err)
	}
}

func (h *harness) answer() string { h.t.Helper(); return h.next(h.answers, "answer") }

func (h *harness) note() string { h.t.Helper(); return h.next(h.notes, "notification") }

func (h *harness) next(from chan string, what string) string {
	h.t.Helper()
	select {
	case text := <-from:
		return text
	case <-time.After(patience):
		h.t.Fatalf("no %s came", what)
		return ""
	}
}

// ask sends a message and returns what is answered next.
func (h *harness) ask(format string, args ...any) string {
	h.t.Helper()
	h.send(format, args...)
	return h.answer()
}

// expect sends a message and checks the answer.
func (h *harness) expect(message, want string) {
	h.t.Helper()
	if got := h.ask("%s", message); got != want {
		h.t.Errorf("%s\n got %s\nwant %s", message, got, want)
	}
}

// call sends a request with id 1 and checks the answer: "ok RESULT", "CODE
// MESSAGE", or "CODE MESSAGE [KIND]".
func (h *harness) call(method, params, want string) {
	h.t.Helper()
	if got := h.result(method, params); got != want {
		h.t.Errorf("%s %s\n got %s\nwant %s", method, params, got, want)
	}
}

func (h *harness) result(method, params string) string {
	h.t.Helper()
	text := h.ask(`{"id":1,"method":"%s","params":%s}`, method, params)
	v, err := proto.Parse([]byte(text))
	if err != nil {
		h.t.Fatalf("the answer to %s is %s", method, text)
	}
	e := v.Get("error")
	if e.Kind == proto.Absent {
		return "ok " + strings.TrimSuffix(strings.TrimPrefix(text, `{"id":1,"result":`), "}")
	}
	got := string(e.Get("code").Raw()) + " " + e.Get("message").Str()
	if kind := e.Get("data").Get("kind"); kind.Kind == proto.String {
		got += " [" + kind.Str() + "]"
	}
	return got
}

// initialize does the handshake and returns the session's id.
func (h *harness) initialize(resume string) string {
	h.t.Helper()
	params := `{"clientName":"test"}`
	if resume != "" {
		params = `{"clientName":"test","resumeSessionId":"` + resume + `"}`
	}
	text := h.ask(`{"id":0,"method":"initialize","params":%s}`, params)
	v, err := proto.Parse([]byte(text))
	id := v.Get("result").Get("sessionId").Str()
	if err != nil || id == "" {
		h.t.Fatalf("initialize: %s", text)
	}
	h.send(`{"method":"initialized"}`)
	h.id = id
	return id
}

// alive checks that the connection is served still.
func (h *harness) alive() {
	h.t.Helper()
	h.expect(`{"id":"alive","method":"x"}`, `{"error":{"code":-32601,"message":"exec-server stub does not implement `+"`x`"+` yet"},"id":"alive"}`)
}

// gone checks that the server ends the connection without another word.
func (h *harness) gone() {
	h.t.Helper()
	select {
	case <-h.ended:
	case <-time.After(patience):
		h.t.Fatal("the connection goes on")
	}
	select {
	case text := <-h.answers:
		h.t.Errorf("the last word is %s", text)
	default:
	}
}

// leave ends the connection and waits until the server is done with it.
func (h *harness) leave() {
	h.t.Helper()
	_ = h.conn.Close()
	select {
	case <-h.served:
	case <-time.After(patience):
		h.t.Fatal("the end of the connection is not noticed")
	}
}

// ready is a connection behind its handshake.
func ready(t *testing.T, s *Server, hello proto.Hello) *harness {
	t.Helper()
	h := connect(t, s, hello)
	h.initialize("")
	return h
}

// session is the harness's session in the server.
func (h *harness) session() *session {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	return h.server.sessions[h.id]
}
