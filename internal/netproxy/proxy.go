package netproxy

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/exec-server/exec-server/internal/netproxy/masking"
	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

// What one command may have at once, and how long it may take.
const (
	maxConnections = 256 // of each listener
	maxHeader      = 256 << 10
	headerTimeout  = 30 * time.Second
	idleTimeout    = 5 * time.Minute
	resolveTimeout = 5 * time.Second
	dialTimeout    = 10 * time.Second // of one address
	maxAddresses   = 8                // of one name, that are tried
)

// Proxy serves one command.
type Proxy struct {
	policy  *policy.Policy
	limited bool
	// report takes every decision. It may block.
	report func(*policy.Decision)
	// ask puts a target to the client, and returns when that is answered or the
	// time for it has passed; nil if there is nobody to ask.
	ask func(context.Context, policy.Target) policy.Answer

	upstream  func(*url.URL) (*url.URL, error) // never nil; gives nil for "directly"
	transport *http.Transport
	masked    *masking.Secrets // nil if the command has no placeholders

	// What tests put in place of the network.
	resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	dialer  func(ctx context.Context, network, address string) (net.Conn, error)
	roots   *x509.CertPool // nil for the system's
}

// New makes a proxy. report gets every decision; ask may be nil.
func New(c *policy.Config, report func(*policy.Decision), ask func(context.Context, policy.Target) policy.Answer) (*Proxy, error) {
	rules, err := policy.New(c.Domains, c.LocalOK)
	if err != nil {
		return nil, err
	}
	var masked *masking.Secrets
	if c.Masking != nil {
		if masked, err = masking.ParseSecrets(c.Masking); err != nil {
			return nil, err
		}
	}
	upstream := httpproxy.Config{HTTPProxy: c.HTTPProxy, HTTPSProxy: c.HTTPSProxy, NoProxy: c.NoProxy}
	p := &Proxy{
		policy: rules, limited: c.Limited, report: report, ask: ask, masked: masked, upstream: upstream.ProxyFunc(),
		resolve: func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		},
		dialer: (&net.Dialer{Timeout: dialTimeout}).DialContext,
	}
	p.transport = &http.Transport{
		Proxy:                  func(r *http.Request) (*url.URL, error) { return routeOf(r.Context()).upstream, nil },
		DialContext:            p.dialFor,
		DisableCompression:     true,
		MaxIdleConns:           32,
		MaxConnsPerHost:        maxConnections,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
	return p, nil
}
