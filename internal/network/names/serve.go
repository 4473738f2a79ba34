package names

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Serve answers what comes by the two, until ctx is done: then it returns nil. It
// closes both. It may be called for several pairs.
func (n *Names) Serve(ctx context.Context, datagrams net.PacketConn, connections net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		_ = datagrams.Close()
		_ = connections.Close()
	})
	defer stop()
	var wg sync.WaitGroup
	failed := make(chan error, 2)
	for _, serve := range []func() error{
		func() error { return n.serveDatagrams(ctx, datagrams) },
		func() error { return n.serveConnections(ctx, connections) },
	} {
		wg.Go(func() {
			err := serve()
			if ctx.Err() == nil {
				failed <- err
				cancel()
			}
		})
	}
	wg.Wait()
	// Both have been closed, or are now: AfterFunc may still be on its way.
	_ = datagrams.Close()
	_ = connections.Close()
	select {
	case err := <-failed:
		return fmt.Errorf("serve DNS: %w", err)
	default:
		return nil
	}
}

// serveDatagrams answers datagrams, each on a goroutine, until reading fails.
func (n *Names) serveDatagrams(ctx context.Context, c net.PacketConn) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	buf := make([]byte, maxQuery)
	for {
		size, from, err := c.ReadFrom(buf)
		if err != nil {
			return err
		}
		select {
		case n.workers <- struct{}{}:
		default:
			send(c, n.busy(buf[:size]), from)
			continue
		}
		message := append([]byte(nil), buf[:size]...)
		wg.Go(func() {
			defer func() { <-n.workers }()
			send(c, n.reply(ctx, message, true), from)
		})
	}
}

// send sends an answer, if there is one. If it is lost the program asks again.
func send(c net.PacketConn, message []byte, to net.Addr) {
	if message != nil {
		_, _ = c.WriteTo(message, to)
	}
}
