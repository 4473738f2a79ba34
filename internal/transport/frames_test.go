package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// frame is a frame as a client sends it. The mask is all zeros, which is allowed
// and spares the masking.
func frame(first byte, payload []byte) []byte {
	out := []byte{first}
	switch n := len(payload); {
	case n < 126:
		out = append(out, 0x80|byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, 0x80|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, 0x80|127), uint64(n))
	}
	return append(append(out, 0, 0, 0, 0), payload...)
}

const (
	text, binaryFrame, continued = 0x81, 0x82, 0x80
	closing, ping, pong          = 0x88, 0x89, 0x8a
	more                         = 0x7f // mask: more frames of the message follow
)

func (s *socket) send(first byte, payload string) {
	s.t.Helper()
	s.write(frame(first, []byte(payload)))
}

// receive reads one frame: its first byte, and its payload.
func (s *socket) receive() (first byte, payload []byte) {
	s.t.Helper()
	var head [2]byte
	s.full(head[:])
	n := uint64(head[1])
	switch n {
	case 126:
		var b [2]byte
		s.full(b[:])
		if n = uint64(binary.BigEndian.Uint16(b[:])); n < 126 {
			s.t.Errorf("%d bytes have a long length", n)
		}
	case 127:
		var b [8]byte
		s.full(b[:])
		if n = binary.BigEndian.Uint64(b[:]); n < 1<<16 {
			s.t.Errorf("%d bytes have a long length", n)
		}
	}
	if head[1]&0x80 != 0 {
		s.t.Fatal("the server masks")
	}
	payload = make([]byte, n)
	s.full(payload)
	return head[0], payload
}

func (s *socket) full(b []byte) {
	s.t.Helper()
	if _, err := io.ReadFull(s.r, b); err != nil {
		s.t.Fatal(err)
	}
}

// expect checks the next frame.
func (s *socket) expect(first byte, payload string) {
	s.t.Helper()
	if f, p := s.receive(); f != first || string(p) != payload {
		s.t.Errorf("got frame %#x %s, want %#x %s", f, brief(string(p)), first, brief(payload))
	}
}

func brief(s string) string { return fmt.Sprintf("%.60q (%d bytes)", s, len(s)) }

// dropped checks that the server ends the connection without another byte.
func (s *socket) dropped() {
	s.t.Helper()
	rest, err := io.ReadAll(s.r)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		s.t.Fatalf("the connection goes on: %v", err)
	}
	if len(rest) > 0 {
		s.t.Errorf("the last words are % x", rest)
	}
}
