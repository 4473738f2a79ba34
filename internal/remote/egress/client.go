package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// timeout bounds a call of the registry with its answer, and the making of a
// WebSocket from the dial to the end of the upgrade. It is the reference's.
const timeout = 10 * time.Second

// maxHead bounds the head of an answer, in bytes.
const maxHead = 64 << 10

// Options say where the way out goes. What is empty is taken from the process's
// environment.
type Options struct {
	// ProxyURL is an http, https, socks5 or socks5h URL, with user and password if
	// the proxy wants them. A host and a port alone are an http proxy. If empty,
	// HTTPS_PROXY counts for https and wss, HTTP_PROXY for http and ws, and
	// ALL_PROXY for what these leave open. "none" uses no proxy at all.
	ProxyURL string
	// NoProxy lists what is reached directly, as NO_PROXY does: domains with all
	// below them, addresses and networks, each with a port if only that is meant,
	// or "*". localhost and loopback addresses never go through a proxy.
	NoProxy string
	// CAFile holds certificates in PEM that are trusted beside the system's. If
	// empty, CODEX_CA_CERTIFICATE and then SSL_CERT_FILE name one.
	CAFile string
}

// Client makes the requests. Its zero value is not usable.
type Client struct {
	proxy func(*url.URL) (*url.URL, error) // nil for no proxy; the scheme is http or https
	tls   *tls.Config
	http  *http.Client
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
}

// New reads the options and what they name. Later changes of the environment or
// of the file have no effect.
func New(o Options) (*Client, error) { return newClient(o, os.Getenv) }

func newClient(o Options, getenv func(string) string) (*Client, error) {
	proxy, err := proxies(o, getenv)
	if err != nil {
		return nil, err
	}
	roots, err := roots(o.CAFile, getenv)
	if err != nil {
		return nil, err
	}
	c := &Client{proxy: proxy, tls: tlsConfig(roots), dial: (&net.Dialer{Timeout: timeout, Control: limitUnsent}).DialContext}
	t := c.transport()
	t.Proxy = func(r *http.Request) (*url.URL, error) { return c.proxy(r.URL) }
	t.ForceAttemptHTTP2 = true
	t.MaxIdleConnsPerHost = 4
	t.IdleConnTimeout = 90 * time.Second
	c.http = &http.Client{Transport: t, CheckRedirect: noRedirect, Timeout: timeout}
	return c, nil
}

func tlsConfig(roots *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// transport is what all requests have in common. Compression is the caller's.
func (c *Client) transport() *http.Transport {
	return &http.Transport{
		DialContext:            func(ctx context.Context, network, addr string) (net.Conn, error) { return c.dial(ctx, network, addr) },
		ProxyConnectHeader:     http.Header{"User-Agent": nil}, // net/http would name itself
		TLSClientConfig:        c.tls.Clone(),
		TLSHandshakeTimeout:    timeout,
		MaxResponseHeaderBytes: maxHead,
		DisableCompression:     true,
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
			if err := refused(resp); err != nil {
				return fmt.Errorf("proxy: %w", err)
			}
			return nil
		},
	}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// HTTP returns the client for requests. A request and the reading of its answer
// have 10 s together. Redirects are answers like others. Answers are handed on
// as they were sent, compressed or not.
func (c *Client) HTTP() *http.Client { return c.http }
