package netproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

// opens says whether the TLS of a tunnel is ended here: where a credential may be
// put back, and where the mode needs to see the requests.
func (p *Proxy) opens(r *request) bool {
	return p.masked != nil && (p.limited || p.masked.Reach(r.host, r.port))
}

// recordHandshake is the first byte of a TLS connection.
const recordHandshake = 22

// open serves a tunnel whose TLS ends here. What is no TLS goes through as it is,
// if the mode has it. origin is the other end if that is connected already.
func (p *Proxy) open(ctx context.Context, client *readAhead, to route, req *request, origin net.Conn) {
	defer func() { _ = client.Close() }()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	first, err := client.ahead.Peek(1)
	if err != nil || p.limited && first[0] != recordHandshake {
		if origin != nil {
			_ = origin.Close()
		}
		return
	}
	if first[0] != recordHandshake {
		if origin == nil {
			if origin, err = p.reach(ctx, to, req); err != nil {
				return
			}
		}
		tunnel(ctx, client, origin)
		return
	}
	p.serveOpened(ctx, client, to, req, origin)
}

func (p *Proxy) serveOpened(ctx context.Context, client *readAhead, to route, req *request, origin net.Conn) {
	o := &opened{p: p, to: to, req: req, first: origin}
	transport := &http.Transport{
		DialContext:            o.dial,
		TLSClientConfig:        &tls.Config{RootCAs: p.roots, ServerName: req.host.String()},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           8,
		MaxConnsPerHost:        maxConnections,
		IdleConnTimeout:        idleTimeout,
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: maxHeader,
	}
	defer o.close()
	defer transport.CloseIdleConnections()
	quiet := log.New(io.Discard, "", 0) // what a command sends is nobody's log
	o.forwarder = &httputil.ReverseProxy{
		Rewrite: rewriteOpened, Transport: transport, FlushInterval: -1, ErrorLog: quiet,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.Header().Del("Content-Type")
			text(w, http.StatusBadGateway, "upstream failure")
		},
	}
	s := &http.Server{Handler: o, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, DisableGeneralOptionsHandler: true, ErrorLog: quiet}
	one := &single{Conn: client, closed: make(chan struct{})}
	inner := tls.Server(one, &tls.Config{
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.masked.Leaf(req.host) },
	})
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	_ = s.Serve(&accepted{single: one, inner: inner})
	_ = s.Close()
}

// opened is a tunnel whose requests are seen.
type opened struct {
	p         *Proxy
	to        route
	req       *request
	forwarder *httputil.ReverseProxy

	mu    sync.Mutex // guards first
	first net.Conn   // a connection to the origin that is not used yet, or nil
}

func (o *opened) take() net.Conn {
	o.mu.Lock()
	defer o.mu.Unlock()
	conn := o.first
	o.first = nil
	return conn
}

func (o *opened) close() {
	if conn := o.take(); conn != nil {
		_ = conn.Close()
	}
}

// dial connects to what was decided about, whatever the address says.
func (o *opened) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if conn := o.take(); conn != nil {
		return conn, nil
	}
	return o.p.reach(ctx, o.to, o.req)
}

// ServeHTTP implements http.Handler.
func (o *opened) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, port, ok := splitAuthority(r.Host, 443)
	if !ok || host != o.req.host || port != o.req.port || r.Method == http.MethodConnect {
		text(w, http.StatusBadRequest, "host mismatch")
		return
	}
	if o.p.limited && !reads(r.Method) {
		req := *o.req
		req.method = r.Method
		blocked(w, o.p.refuse(&req, byMode, policy.MethodNotAllowed))
		return
	}
	o.p.masked.Restore(r.Header, r.Method, "https", host, port, r.URL)
	_ = http.NewResponseController(w).EnableFullDuplex() // an answer may begin before its request has ended
	w.Header()["Content-Type"] = nil                     // nothing is guessed where the origin says nothing
	o.forwarder.ServeHTTP(w, r)
}

// rewriteOpened makes the request that goes out. A web socket is one of them.
func rewriteOpened(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", r.In.Host, r.In.Host
	r.Out.Header.Del("Proxy-Connection")
	untouched(r)
}

// readAhead is a connection of which something was read already.
type readAhead struct {
	net.Conn
	ahead *bufio.Reader
}

// Read implements net.Conn.
func (c *readAhead) Read(b []byte) (int, error) { return c.ahead.Read(b) }

// CloseWrite ends the sending direction.
func (c *readAhead) CloseWrite() error { return closeWrite(c.Conn) }

// single is a connection whose end can be waited for.
type single struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

// Close implements net.Conn.
func (c *single) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// accepted is a listener that has one connection, and ends with it.
type accepted struct {
	*single
	inner net.Conn // over it; nil once it was accepted
}

// Accept implements net.Listener.
func (a *accepted) Accept() (net.Conn, error) {
	if conn := a.inner; conn != nil {
		a.inner = nil
		return conn, nil
	}
	<-a.closed
	return nil, net.ErrClosed
}

// Addr implements net.Listener.
func (a *accepted) Addr() net.Addr { return a.LocalAddr() }
