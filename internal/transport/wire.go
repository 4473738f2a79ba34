package transport

import (
	"net"
	"sync"
)

type wireKey struct{}

// wireListener accepts connections whose writes can be shared between the
// WebSocket library, which answers pings, and our own frames.
type wireListener struct{ *net.TCPListener }

// Accept implements net.Listener. TCP_NODELAY is on by default.
func (l wireListener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return &wireConn{TCPConn: c}, nil
}

// wireConn is a TCP connection whose every write is whole: the two parties that
// write to it write whole WebSocket frames.
type wireConn struct {
	*net.TCPConn
	mu sync.Mutex // makes writes whole; a peer's slowness holds up only itself
}

const closeFrame = 0x88

// Write implements net.Conn. Close frames of the library are swallowed: the
// protocol ends connections by ending TCP.
func (c *wireConn) Write(p []byte) (int, error) {
	if len(p) > 0 && p[0] == closeFrame {
		return len(p), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.TCPConn.Write(p)
}

func (c *wireConn) writeAll(bufs net.Buffers) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := bufs.WriteTo(c.TCPConn)
	return err
}
