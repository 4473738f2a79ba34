package netproxy

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

// serveHTTP serves HTTP with CONNECT on l until ctx or l ends.
func (p *Proxy) serveHTTP(ctx context.Context, l net.Listener) error {
	quiet := log.New(io.Discard, "", 0) // what a command sends is nobody's log
	h := &handler{p: p, ctx: ctx}
	h.forwarder = &httputil.ReverseProxy{
		Rewrite: rewrite, Transport: p.transport, FlushInterval: -1, ErrorLog: quiet,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.Header().Del("Content-Type")
			text(w, http.StatusBadGateway, "upstream failure")
		},
	}
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, ErrorLog: quiet,
	}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	defer p.transport.CloseIdleConnections()
	return s.Serve(bound(l, maxConnections))
}

type handler struct {
	p         *Proxy
	ctx       context.Context // ends with the proxy; tunnels outlive their request's own
	forwarder *httputil.ReverseProxy
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		h.connect(w, r)
		return
	}
	req := request{protocol: policy.HTTP, method: r.Method, client: r.RemoteAddr}
	if _, ok := r.Header["X-Unix-Socket"]; ok {
		req.host, _ = policy.ParseHost("unix-socket")
		h.p.refuse(&req, byState, policy.UnixUnsupported)
		text(w, http.StatusNotImplemented, "unix sockets unsupported")
		return
	}
	if r.URL.Scheme != "https" {
		r.URL.Scheme = "http"
	}
	authority := r.URL.Host
	if authority == "" {
		authority = r.Host
	}
	if authority == "" {
		text(w, http.StatusBadRequest, "missing host")
		return
	}
	var ok bool
	if req.host, req.port, ok = splitAuthority(authority, defaultPort(r.URL.Scheme)); !ok {
		text(w, http.StatusBadRequest, "invalid Host header")
		return
	}
	to, d := h.p.decide(r.Context(), &req)
	if d.Verdict == "allow" && h.p.limited && !reads(r.Method) {
		d = h.p.refuse(&req, byMode, policy.MethodNotAllowed)
	}
	if d.Verdict != "allow" {
		blocked(w, d)
		return
	}
	r.URL.Host, r.Host, r.URL.User = authority, authority, nil
	h.p.masked.Restore(r.Header, r.Method, r.URL.Scheme, req.host, req.port, r.URL)
	to.upstream, _ = h.p.upstream(r.URL)
	_ = http.NewResponseController(w).EnableFullDuplex() // an answer may begin before its request has ended
	w.Header()["Content-Type"] = nil                     // nothing is guessed where the origin says nothing
	h.forwarder.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), routeKey{}, to)))
}

// reads says whether a method is one of those of the mode that only reads.
func reads(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

func defaultPort(scheme string) uint16 {
	if scheme == "https" {
		return 443
	}
	return 80
}

// splitAuthority reads HOST, HOST:PORT or [ADDRESS]:PORT.
func splitAuthority(s string, port uint16) (policy.Host, uint16, bool) {
	host := s
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		n, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil {
			return policy.Host{}, 0, false
		}
		host, port = s[:i], uint16(n)
	}
	h, ok := policy.ParseHost(host)
	return h, port, ok
}

// notForwarded are header fields of one connection, beside those that the
// library knows of and that Connection names. An upgrade is not offered: a
// client that wants a web socket through a proxy uses CONNECT.
var notForwarded = []string{"Connection", "Proxy-Connection", "Te", "Upgrade", "Trailer"}

// rewrite makes the request that goes out. Its hop-by-hop fields are gone
// already.
func rewrite(r *httputil.ProxyRequest) {
	for _, name := range notForwarded {
		r.Out.Header.Del(name)
	}
	untouched(r)
}

// untouched puts back what the library takes out or changes.
func untouched(r *httputil.ProxyRequest) {
	// The library takes these out, for proxies that stand before an origin.
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v := r.In.Header.Values(name); len(v) > 0 {
			r.Out.Header[name] = v
		}
	}
	r.Out.URL.RawQuery = r.In.URL.RawQuery // the library drops what it cannot parse
	if r.In.RequestURI == "*" {
		r.Out.URL = &url.URL{Scheme: r.Out.URL.Scheme, Host: r.Out.URL.Host, Opaque: "*"}
	}
}
