package remotetest

import (
	"io"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/proto"
)

// openDirect makes the socket a harness's.
func (s *socket) openDirect() (proto.Conn, error) {
	s.peer.mu.Lock()
	defer s.peer.mu.Unlock()
	if s.taken {
		return nil, ErrBusy
	}
	s.taken = true
	return &directConn{s: s}, nil
}

// directConn is the one connection over a direct socket. With it the socket ends.
type directConn struct {
	s  *socket
	in proto.Frame
}

// ReadFrame implements proto.Conn.
func (c *directConn) ReadFrame() (proto.Frame, error) {
	select {
	case message := <-c.s.direct:
		c.in = append(append(c.in[:0], 0, 0, 0, 0), message...)
		return c.in.Seal(), nil
	case <-c.s.done:
		return nil, ErrLost
	}
}

// WriteFrames implements proto.Conn.
func (c *directConn) WriteFrames(frames []byte) error {
	for len(frames) > 0 {
		var f proto.Frame
		if f, frames = proto.NextFrame(frames); f == nil {
			return io.ErrUnexpectedEOF
		}
		if err := c.s.write(websocket.MessageText, f.Body()); err != nil {
			return ErrLost
		}
	}
	return nil
}

// Close implements proto.Conn. The next Open waits for another socket.
func (c *directConn) Close() error {
	c.s.cancel()
	c.s.peer.mu.Lock()
	defer c.s.peer.mu.Unlock()
	if e := c.s.peer.envs[c.s.env]; e.socket == c.s {
		e.socket = nil
	}
	return nil
}
