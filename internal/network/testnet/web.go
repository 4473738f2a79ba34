package testnet

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
)

// Server is HTTP on every address of the world: 80 and 8080 in the clear, 443 and 8443
// in TLS, with HTTP/2. What has no handler of its own is answered with an Echo, except for:
//
//	/bytes/N     N bytes
//	/events/ID   server-sent events, as Events(ID) has them
//	/hang        no header ever
//	/discard     how long the body was
type Server struct {
	mu       sync.Mutex // guards what follows
	handlers map[string]http.Handler
	events   map[string]chan string
	requests []Echo
}

// Echo says what a request was like when it got to the server.
type Echo struct {
	Method string
	Host   string // as in the request
	Path   string
	Proto  string
	SNI    string // "" without TLS
	TLS    bool
	To     netip.AddrPort
	From   netip.AddrPort
	Header http.Header
}

// Handle answers requests for a host, in whatever way they come.
func (s *Server) Handle(host string, h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[host] = h
}

// Handler is what answers requests for a host, or nil.
func (s *Server) Handler(host string) http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handlers[host]
}

// Events is what /events/ID sends, as soon as it is there, until it is closed.
func (s *Server) Events(id string) chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events[id] == nil {
		s.events[id] = make(chan string)
	}
	return s.events[id]
}

// Requests are those that came so far.
func (s *Server) Requests() []Echo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Echo(nil), s.requests...)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := Echo{Method: r.Method, Host: r.Host, Path: r.URL.RequestURI(), Proto: r.Proto, Header: r.Header}
	e.To, _ = netip.ParseAddrPort(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
	e.From, _ = netip.ParseAddrPort(r.RemoteAddr)
	if r.TLS != nil {
		e.TLS, e.SNI = true, r.TLS.ServerName
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	s.mu.Lock()
	s.requests = append(s.requests, e)
	h := s.handlers[host]
	s.mu.Unlock()
	what, arg, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case h != nil:
		h.ServeHTTP(w, r)
	case what == "bytes":
		n, _ := strconv.ParseInt(arg, 10, 64)
		w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
		_, _ = io.CopyN(w, zeros{}, n)
	case what == "discard":
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strconv.FormatInt(n, 10)+"\n")
	case what == "hang":
		<-r.Context().Done()
	case what == "events":
		s.stream(w, r, arg)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(e)
	}
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request, id string) {
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	_ = c.Flush()
	events := s.Events(id)
	for {
		select {
		case text, ok := <-events:
			if !ok {
				return
			}
			_, _ = io.WriteString(w, "data: "+text+"\n\n")
			_ = c.Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// zeros reads as zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// serveWeb starts the servers.
func (n *Internet) serveWeb() (*Server, error) {
	s := &Server{handlers: map[string]http.Handler{}, events: map[string]chan string{}}
	for _, port := range []string{"80", "8080", "443", "8443"} {
		l, err := n.World.Listen("tcp", ":"+port)
		if err != nil {
			return nil, err
		}
		h := &http.Server{Handler: s, TLSConfig: n.CA.Config(), ErrorLog: log.New(io.Discard, "", 0)}
		run := func() error { return h.Serve(l) }
		if strings.HasSuffix(port, "443") {
			run = func() error { return h.ServeTLS(l, "", "") }
		}
		n.serve(h, run)
	}
	return s, nil
}
