package testnet

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Forward makes an address of the namespace reachable from outside of it, until the
// test ends, and returns the address to use in its place.
func (s *Space) Forward(t testing.TB, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer from.Close()
				to, err := s.DialContext(ctx, "tcp", address)
				if err != nil {
					return
				}
				defer to.Close()
				defer context.AfterFunc(ctx, func() { _, _ = from.Close(), to.Close() })()
				splice(from.(*net.TCPConn), to.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { cancel(); _ = l.Close(); running.Wait() })
	return l.Addr().String()
}

// splice copies both ways until both have ended.
func splice(a, b *net.TCPConn) {
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = way[0].ReadFrom(way[1])
			_ = way[0].CloseWrite()
		})
	}
	both.Wait()
}
