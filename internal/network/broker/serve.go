package broker

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/exec-server/exec-server/internal/network/rules"
)

const (
	// headTime bounds how long a client takes for its handshake, and for each head.
	// Bodies and answers may take as long as they want.
	headTime = 30 * time.Second
	// idleTime is how long a connection without a request is kept. Clients keep theirs
	// for shorter, mostly.
	idleTime = 3 * time.Minute
	// maxHead bounds the head of a request, in bytes; the library adds 4096. Servers
	// take 8 to 64 KiB.
	maxHead = 64 << 10
	// maxStreams bounds the requests that one connection of HTTP/2 has at a time. It is
	// what RFC 9113 has for the least.
	maxStreams = 100
)

// Serve carries the HTTP/1.x that comes on client, until that ends or ctx does, and
// closes it. When it returns, all that it has started is over.
func Serve(ctx context.Context, client net.Conn, o Options) {
	serve(ctx, client, client, &o, rules.HTTP)
}

// ServeTLS is Serve for a client that begins with TLS, in which HTTP/1.1 or HTTP/2 is
// spoken. The host's own certificate is checked for o.Name.
func ServeTLS(ctx context.Context, client net.Conn, o Options) {
	serve(ctx, client, tls.Server(client, o.Authority.config(o.Name)), &o, rules.TLS)
}

// serve serves what is carried by c, which is client or is in it.
func serve(ctx context.Context, client, c net.Conn, o *Options, app rules.Protocol) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	defer client.Close()
	s := newSession(ctx, o, app)
	defer s.transport.CloseIdleConnections()
	l := &listener{c: c, ended: make(chan struct{})}
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHead,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0), // what a sandbox sends is nobody's log
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		Protocols:                    new(http.Protocols),
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				close(l.ended)
			}
		},
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(app == rules.TLS)
	_ = server.Serve(l) // the end of the listener, which is that of the connection
	s.handlers.wait()   // those of HTTP/2, and what has become of an upgrade
}

// listener has one connection.
type listener struct {
	c     net.Conn
	given bool
	ended chan struct{} // closed when the server is done with it
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.c, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *listener) Close() error   { return nil }
func (l *listener) Addr() net.Addr { return l.c.LocalAddr() }
