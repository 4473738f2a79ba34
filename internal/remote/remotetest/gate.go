package remotetest

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// gates is a listener whose connections can be frozen.
type gates struct{ net.Listener }

// Accept implements net.Listener.
func (l gates) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gate{Conn: c, frozen: make(chan struct{}), closed: make(chan struct{})}, nil
}

// gate is a connection of which, once it is frozen, nothing is read and to which
// nothing is written, as if its other end had been unplugged.
type gate struct {
	net.Conn
	freezing, closing sync.Once
	frozen, closed    chan struct{}
}

// Read implements net.Conn.
func (g *gate) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	g.pass()
	return n, err
}

// Write implements net.Conn.
func (g *gate) Write(b []byte) (int, error) {
	g.pass()
	return g.Conn.Write(b)
}

func (g *gate) pass() {
	if g.isFrozen() {
		<-g.closed
	}
}

func (g *gate) isFrozen() bool {
	select {
	case <-g.frozen:
		return true
	default:
		return false
	}
}

// Close implements net.Conn.
func (g *gate) Close() error {
	g.closing.Do(func() { close(g.closed) })
	return g.Conn.Close()
}

func (g *gate) freeze() { g.freezing.Do(func() { close(g.frozen) }) }

// abort ends the connection with a reset, where there is such a thing.
func (g *gate) abort() {
	if c, ok := g.Conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = g.Close()
}

type gateKey struct{}

// keepGate is an http.Server's ConnContext.
func keepGate(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, gateKey{}, c)
}

func gateOf(r *http.Request) *gate { return r.Context().Value(gateKey{}).(*gate) }
