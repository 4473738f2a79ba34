package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/coder/websocket"
)

// Dial opens a WebSocket, without compression and subprotocol, and without a
// user agent if header has none. It takes at most 10 s, and less if ctx ends;
// afterwards ctx means nothing to the connection. The response is nil if there
// was none; its body holds at most 1024 bytes. Redirects are refusals.
func (c *Client) Dial(ctx context.Context, to string, header http.Header) (*websocket.Conn, *http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	u, err := target(to)
	if err != nil {
		return nil, nil, err
	}
	t, err := c.dialer(u)
	if err != nil {
		return nil, nil, err
	}
	defer t.CloseIdleConnections()
	if header = header.Clone(); header == nil {
		header = http.Header{}
	}
	if _, ok := header["User-Agent"]; !ok {
		header["User-Agent"] = nil // net/http would name itself
	}
	conn, resp, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{
		HTTPClient:      &http.Client{Transport: t, CheckRedirect: noRedirect},
		HTTPHeader:      header,
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, resp, hide(err)
	}
	return conn, resp, nil
}

// target parses the URL of a WebSocket, as http or https.
func target(to string) (*url.URL, error) {
	u, err := url.Parse(to)
	if err != nil {
		return nil, errors.New("it is not a URL") // which may hold a secret
	}
	switch u.Scheme {
	case "ws":
		u.Scheme = "http"
	case "wss":
		u.Scheme = "https"
	default:
		return nil, fmt.Errorf("a URL with the scheme %q is not that of a WebSocket", u.Scheme)
	}
	if u.Hostname() == "" {
		return nil, errors.New("the URL has no host")
	}
	return u, nil
}

// hide takes the URL out of an error: its query may hold a signature.
func hide(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// dialer returns a transport for one WebSocket. net/http tunnels through a proxy
// for https only, and would send an upgrade over http as an ordinary request, which
// proxies do not hand on; so the tunnel is made here then.
func (c *Client) dialer(u *url.URL) (*http.Transport, error) {
	t := c.transport()
	proxy, err := c.proxy(u)
	if err != nil {
		return nil, err
	}
	switch {
	case proxy == nil:
	case u.Scheme == "http" && (proxy.Scheme == "http" || proxy.Scheme == "https"):
		t.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) {
			return c.tunnel(ctx, proxy, addr)
		}
	default:
		t.Proxy = http.ProxyURL(proxy)
	}
	return t, nil
}
