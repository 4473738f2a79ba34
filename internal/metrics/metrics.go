// Package metrics serves the counters of the environments' networks, in the text
// format of Prometheus, on a listener of its own.
package metrics

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// How long a reader may take for its request, and for the answer, and how many there
// may be at a time.
const (
	requestTime = 10 * time.Second
	answerTime  = 30 * time.Second
	mostReaders = 4
)

// Server serves /metrics.
type Server struct {
	l      net.Listener
	server *http.Server
	served sync.WaitGroup
}

// Listen binds the address of a URL, http://IP:PORT.
func Listen(url string) (*Server, error) {
	text, ok := strings.CutPrefix(url, "http://")
	addr, err := netip.ParseAddrPort(text)
	if !ok || err != nil {
		return nil, fmt.Errorf("listen for metrics: %q is not http://IP:PORT", url)
	}
	network := "tcp"
	if addr.Addr().Is4() {
		network = "tcp4"
	}
	l, err := net.Listen(network, addr.String())
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	return &Server{l: l, server: &http.Server{
		ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: answerTime, MaxHeaderBytes: 16 << 10,
	}}, nil
}

// Serve begins to serve what the source has.
func (s *Server) Serve(source Source) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{source})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", ownPages(promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: mostReaders})))
	s.server.Handler = mux
	s.served.Go(func() { _ = s.server.Serve(s.l) }) // its only error is that of Close
}

// ownPages refuses what a web page asks for.
func ownPages(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			http.Error(w, "not for web pages", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// URL is where it serves.
func (s *Server) URL() string { return "http://" + s.l.Addr().String() + "/metrics" }

// Close ends the listener and every connection. It may be called again.
func (s *Server) Close() {
	_ = s.l.Close()
	_ = s.server.Close()
	s.served.Wait()
}
