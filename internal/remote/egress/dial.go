package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

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
	if u.User != nil { // net/http would make an authorization of it
		return nil, errors.New("the URL has a user")
	}
	return u, nil
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
