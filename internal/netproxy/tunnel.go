package netproxy

import (
	"context"
	"io"
	"net"
)

// tunnel moves bytes both ways until both directions have ended, or ctx has, and
// closes both connections. The ends of the directions are passed on one by one.
func tunnel(ctx context.Context, a, b net.Conn) {
	stop := context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pump(a, b)
	}()
	pump(b, a)
	<-done
	_, _ = a.Close(), b.Close()
}

// pump moves what from sends. If either end fails the other direction has
// nobody to serve any more.
func pump(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if err == nil {
		err = closeWrite(to)
	}
	if err != nil {
		_, _ = to.Close(), from.Close()
	}
}
