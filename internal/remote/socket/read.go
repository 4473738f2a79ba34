package socket

import (
	"io"

	"github.com/coder/websocket"
)

// Read returns the next message, which is valid until the next call, and whether
// it is a binary one.
func (s *Socket) Read() (message []byte, binary bool, err error) {
	kind, r, err := s.ws.Reader(s.ctx)
	if err != nil {
		return nil, false, err
	}
	if cap(s.in) > roomy || s.in == nil {
		s.in = make([]byte, 0, 8<<10)
	}
	s.in = s.in[:0]
	for {
		if len(s.in) == cap(s.in) {
			s.in = append(make([]byte, 0, 2*cap(s.in)), s.in...)
		}
		n, err := r.Read(s.in[len(s.in):cap(s.in)])
		s.in = s.in[:len(s.in)+n]
		if err == io.EOF {
			return s.in, kind == websocket.MessageBinary, nil
		} else if err != nil {
			return nil, false, err
		}
	}
}

// roomy is the size of a message that gets a buffer of its own.
const roomy = 512 << 10
