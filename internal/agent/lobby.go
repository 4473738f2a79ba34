package agent

import (
	"io"

	"github.com/exec-server/exec-server/internal/proto"
)

// Lobby answers a harness that has no session yet, and never opens one: it
// tells what is malformed, unknown, or too early.
type Lobby struct {
	c    *conn
	sink *sink
}

// NewLobby returns a lobby for a connection with that hello.
func NewLobby(hello proto.Hello) *Lobby {
	s := &sink{}
	return &Lobby{newConn(New(Options{}), s, hello), s}
}

// Answer gives the answer to a message, which may be none. It is not ok if the
// message ends the connection.
func (l *Lobby) Answer(f proto.Frame) (answer []byte, ok bool) {
	l.sink.frames = nil
	r := l.c.receive(f)
	if r != nil {
		r.run()
	}
	return l.sink.frames, !l.sink.closed
}

// sink is a connection that keeps what is written to it.
type sink struct {
	frames []byte
	closed bool
}

func (s *sink) ReadFrame() (proto.Frame, error) { return nil, io.EOF }

func (s *sink) WriteFrames(frames []byte) error {
	s.frames = append(s.frames, frames...)
	return nil
}

func (s *sink) Close() error {
	s.closed = true
	return nil
}
