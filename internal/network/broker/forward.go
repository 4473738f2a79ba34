package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/exec-server/exec-server/internal/network/rules"
)

const (
	// handshakeTime bounds the handshake with a host.
	handshakeTime = 15 * time.Second
	// continueTime is how long a host may take to ask for a body that the client holds
	// back; then it is sent anyway.
	continueTime = time.Second
	// maxAnswerHead bounds the head of an answer, in bytes, as browsers do.
	maxAnswerHead = 256 << 10
	// maxIdle bounds the connections that wait for the next request, of one client, and
	// maxIdleTime how long they do.
	maxIdle     = 4
	maxIdleTime = 90 * time.Second
)

func newSession(ctx context.Context, o *Options, app rules.Protocol) *session {
	s := &session{ctx: ctx, o: o, app: app}
	s.transport = &http.Transport{
		DialContext: s.dial, DisableCompression: true, ForceAttemptHTTP2: true,
		TLSClientConfig:     &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: handshakeTime, ExpectContinueTimeout: continueTime,
		MaxResponseHeaderBytes: maxAnswerHead, MaxIdleConns: maxIdle, IdleConnTimeout: maxIdleTime,
	}
	s.proxy = &httputil.ReverseProxy{
		Rewrite: s.rewrite, Transport: s.transport, FlushInterval: -1, ErrorHandler: s.unanswered,
		ModifyResponse: trailing, BufferPool: &buffers, ErrorLog: log.New(io.Discard, "", 0),
	}
	return s
}

// kept are fields that the library takes out, for proxies that stand before a host.
var kept = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// rewrite makes the request that goes out. Fields of the connection are gone already.
func (s *session) rewrite(r *httputil.ProxyRequest) {
	to := r.In.Context().Value(routeKey{}).(*route)
	r.Out.URL = target(r.In, s.scheme(), to.host)
	r.Out.Host = r.In.Host
	r.Out.Trailer = r.In.Trailer // which is filled when the body has ended
	for _, name := range kept {
		if v := r.In.Header.Values(name); len(v) > 0 {
			r.Out.Header[name] = v
		}
	}
	if to.header != "" {
		r.Out.Header.Set(to.header, to.value(r.In.Header.Values(to.header)))
	}
	r.Out = r.Out.WithContext(httptrace.WithClientTrace(r.Out.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { to.connected = true },
	}))
}

// target is what a request asks for, letter by letter as it was sent.
func target(r *http.Request, scheme, host string) *url.URL {
	u := &url.URL{Scheme: scheme, Host: host}
	sent := r.RequestURI
	if sent == "*" || strings.HasPrefix(sent, "/") && !strings.HasPrefix(sent, "//") {
		var asks bool
		u.Opaque, u.RawQuery, asks = strings.Cut(sent, "?")
		u.ForceQuery = asks && u.RawQuery == ""
		return u
	}
	u.Path, u.RawPath, u.RawQuery, u.ForceQuery = r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.URL.ForceQuery
	return u
}

// trailing makes room for what comes behind a body: in HTTP/1.1 that has no length then.
func trailing(r *http.Response) error {
	if len(r.Trailer) > 0 {
		r.Header.Del("Content-Length")
	}
	return nil
}

// unanswered is for a request without an answer. A client whose host has hung up sees
// that its connection has ended, as it would without us, and may try again.
func (s *session) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	to := r.Context().Value(routeKey{}).(*route)
	if r.Context().Err() == nil {
		s.failed(to.host, told(err, to))
	}
	if to.connected {
		panic(http.ErrAbortHandler)
	}
	var invalid *tls.CertificateVerificationError
	if errors.As(err, &invalid) {
		refuse(w, http.StatusBadGateway, "the certificate of "+to.host+" is not valid: "+invalid.Err.Error())
		return
	}
	refuse(w, http.StatusBadGateway, "there is no connection to "+to.host)
}

// errMalformed is in the place of errors that quote what the host has said.
var errMalformed = errors.New("the host's answer is not HTTP")

// told is what of an error may be told: with a credential not what the host says, since
// it may repeat that.
func told(err error, to *route) error {
	var network net.Error
	if to.header == "" || !to.connected || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) {
		return err
	}
	return errMalformed
}

func joinHostPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// buffers are for copying bodies.
var buffers pool

type pool struct{ p sync.Pool }

// Get implements httputil.BufferPool.
func (b *pool) Get() []byte {
	if v, ok := b.p.Get().(*[]byte); ok {
		return *v
	}
	return make([]byte, 32<<10)
}

// Put implements httputil.BufferPool.
func (b *pool) Put(v []byte) { b.p.Put(&v) }
