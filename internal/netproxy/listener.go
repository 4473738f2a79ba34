package netproxy

import (
	"context"
	"net"
	"sync"
)

// each begins to serve every connection of l with f, until ctx or l ends.
func each(ctx context.Context, l net.Listener, f func(net.Conn)) error {
	l = bound(l, maxConnections)
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go f(conn)
	}
}

// bounded is a listener that accepts no more connections while too many are
// open; those wait in the kernel.
type bounded struct {
	net.Listener
	free chan struct{}
	done chan struct{}
	once sync.Once
}

func bound(l net.Listener, n int) *bounded {
	return &bounded{Listener: l, free: make(chan struct{}, n), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.free <- struct{}{}:
	case <-b.done:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &counted{Conn: conn, release: func() { <-b.free }}, nil
}

// Close implements net.Listener.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.done) })
	return b.Listener.Close()
}

// counted is a connection that makes room when it closes.
type counted struct {
	net.Conn
	release func()
	once    sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.release)
	return err
}

// CloseWrite ends the sending direction.
func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite ends the sending direction of a connection that can do that alone.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
