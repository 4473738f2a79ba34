package transport

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
)

type wireKey struct{}

// maxConnections are open at once; further ones wait in the kernel's queue. The
// process needs descriptors for other things too.
const maxConnections = 1024

// wireListener accepts connections whose writes can be shared between the
// WebSocket library, which answers pings, and our own frames.
type wireListener struct {
	*net.TCPListener
	slots chan struct{}
}

// Accept implements net.Listener. TCP_NODELAY is on by default.
func (l wireListener) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	c, err := l.AcceptTCP()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &wireConn{TCPConn: c, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

// wireConn is a TCP connection whose every write is whole: the two parties that
// write to it write whole WebSocket frames.
type wireConn struct {
	*net.TCPConn
	mu sync.Mutex // makes writes whole; a peer's slowness holds up only itself

	broken  atomic.Bool // nothing more can be read
	release func()      // frees the listener's slot
}

// Close implements net.Conn.
func (c *wireConn) Close() error {
	c.release()
	return c.TCPConn.Close()
}

// Read implements net.Conn. The WebSocket library reports the end of a message
// and the end of the connection within one by the same error.
func (c *wireConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.broken.Store(true)
	}
	return n, err
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
