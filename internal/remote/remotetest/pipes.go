package remotetest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Pipes is a listener in memory, for tests that run on a clock of their own
// (testing/synctest): there is no network in them. Its connections are made by
// Dial, whatever the address.
type Pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// NewPipes returns a listener for Options.
func NewPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Dial connects to the listener; it is an http.Transport's DialContext.
func (l *Pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "127.0.0.1:80" } // counts as loopback

// ServePipes serves a handler over Pipes until the test ends, and returns the client
// that reaches it, whatever the address.
func ServePipes(t testing.TB, h http.Handler) *http.Client {
	l := NewPipes()
	server := &http.Server{Handler: h} //nolint:gosec // the test is its only client
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	transport := &http.Transport{DialContext: l.Dial}
	t.Cleanup(func() { transport.CloseIdleConnections(); _ = server.Close(); <-done })
	return &http.Client{Transport: transport}
}
