package broker

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"

	"github.com/exec-server/exec-server/internal/network/hello"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/secret"
)

// session is a connection from the sandbox.
type session struct {
	ctx       context.Context // ends with the connection, and not with a request
	o         *Options
	app       rules.Protocol
	transport *http.Transport
	proxy     *httputil.ReverseProxy
	handlers  handlers
}

// route is what was found out about a request.
type route struct {
	host      string // the host and its port, as the transport wants it
	header    string // the credential's field, or ""
	value     func(sent []string) string
	connected bool // there was a connection to send it by
}

type routeKey struct{}

// ServeHTTP implements http.Handler.
func (s *session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.handlers.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.handlers.leave()
	if s.o.Begin != nil {
		end := s.o.Begin()
		if end == nil {
			refuse(w, http.StatusServiceUnavailable, "there are too many requests at once")
			return
		}
		defer end()
	}
	switch {
	case r.Method == http.MethodConnect:
		refuse(w, http.StatusMethodNotAllowed, "this is not a proxy")
		return
	case r.ProtoMajor == 2 && (r.TLS == nil || r.TLS.NegotiatedProtocol != "h2"):
		refuse(w, http.StatusHTTPVersionNotSupported, "HTTP/2 needs TLS here")
		return
	}
	host, problem := s.host(r)
	if problem != "" {
		refuse(w, http.StatusBadRequest, problem)
		return
	}
	if s.app == rules.TLS && host != s.o.Name {
		refuse(w, http.StatusMisdirectedRequest, "the request is for another host than its connection")
		return
	}
	port := s.o.To.Port()
	to := &route{host: joinHostPort(host, port)}
	if host == "" {
		to.host = s.o.To.String()
	}
	switch d := s.decide(host, port, to); {
	case d.Reason == rules.NoSecret:
		refuse(w, http.StatusBadGateway, "there is no credential for "+host)
		return
	case d.Verdict != rules.Allow:
		deny(w, host, port, d)
		return
	case d.Credential != nil && (r.Method == http.MethodTrace || r.Method == "TRACK"):
		refuse(w, http.StatusMethodNotAllowed, "the answer to "+r.Method+" would have the credential in it")
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		r.Header.Del("Upgrade") // what else there is could carry requests for other hosts
	}
	_ = http.NewResponseController(w).EnableFullDuplex() // an answer may begin before its request has ended
	w.Header()["Content-Type"] = nil                     // nothing is guessed where the host says nothing
	s.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), routeKey{}, to)))
}

// host is whom a request is for, "" if it does not say that, or what is wrong with it.
// The library has read the target, where that has a host, and else the only Host field.
func (s *session) host(r *http.Request) (host, problem string) {
	if r.URL.User != nil || r.URL.Scheme != "" && r.URL.Scheme != s.scheme() {
		return "", "the target of the request is not for this host"
	}
	if r.Host == "" {
		if r.ProtoAtLeast(1, 1) {
			return "", "the request names no host"
		}
		return "", ""
	}
	host, port, ok := hello.Host(r.Host)
	switch {
	case !ok:
		return "", "the request's host is none"
	case port != 0 && port != s.o.To.Port():
		return "", "the request is for another port than its connection"
	}
	return host, ""
}

func (s *session) scheme() string {
	if s.app == rules.TLS {
		return "https"
	}
	return "http"
}

// decide is what becomes of a request. Where it gets a credential, the secret is read
// and the route has how it is sent.
func (s *session) decide(host string, port uint16, to *route) rules.Decision {
	d := s.o.Check(host, port, s.app)
	var err error
	if d.Verdict == rules.Allow && d.Credential != nil {
		var text secret.Secret
		text, err = s.o.Secret(s.ctx, d.Credential) // a client that goes is no reason to begin anew with the next
		if err == nil {
			to.header, to.value, err = field(d.Credential, text)
		}
		if err != nil {
			d = rules.Decision{Reason: rules.NoSecret, Rule: d.Rule}
		}
	}
	if s.o.Decided != nil {
		s.o.Decided(host, s.app, d, err)
	}
	return d
}

func (s *session) failed(host string, err error) {
	if s.o.Failed != nil {
		s.o.Failed(host, err)
	}
}

func (s *session) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, ok := hello.Host(address)
	if !ok {
		return nil, errors.New("dial: the address is none")
	}
	return s.o.Dial(ctx, host, port)
}
