package socket

import (
	"io"

	"github.com/coder/websocket"
)

// Read returns the next message, which is valid until the next call, and whether
// it is a binary one.
func (s *Socket) Read() (message []byte, binary bool, err error) {
	if err := s.read(0); err != nil {
		return nil, false, err
	}
	return s.in, s.kind == websocket.MessageBinary, nil
}

// read reads the next message, behind as many bytes of room.
func (s *Socket) read(room int) error {
	err := s.readMessage(room)
	if err != nil {
		err = plain(err)
		s.failed.CompareAndSwap(nil, &err)
	}
	return err
}

func (s *Socket) readMessage(room int) error {
	kind, r, err := s.ws.Reader(s.ctx)
	if err != nil {
		return err
	}
	if cap(s.in) > roomy || s.in == nil {
		s.in = make([]byte, 8<<10)
	}
	s.kind, s.in = kind, s.in[:room]
	for {
		if len(s.in) == cap(s.in) {
			s.in = append(make([]byte, 0, 2*cap(s.in)), s.in...)
		}
		n, err := r.Read(s.in[len(s.in):cap(s.in)])
		s.in = s.in[:len(s.in)+n]
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// roomy is the size of a message that gets a buffer of its own.
const roomy = 512 << 10
