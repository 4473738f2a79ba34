package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// tunnel makes a connection to addr through an HTTP proxy.
func (c *Client) tunnel(ctx context.Context, proxy *url.URL, addr string) (net.Conn, error) {
	conn, err := c.dial(ctx, "tcp", proxyAddr(proxy))
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	through, err := c.connect(ctx, conn, proxy, addr)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return through, nil
}

// connect asks the proxy on conn for a connection to addr.
func (c *Client) connect(ctx context.Context, conn net.Conn, proxy *url.URL, addr string) (net.Conn, error) {
	if proxy.Scheme == "https" {
		cfg := c.tls.Clone()
		cfg.ServerName = proxy.Hostname()
		secure := tls.Client(conn, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secure
	}
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: http.Header{"User-Agent": nil}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		ask.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := ask.Write(conn); err != nil {
		return nil, err
	}
	// Nothing follows the head of the answer before we have sent something, so that
	// no byte of the tunnel stays in the buffer.
	in := bufio.NewReader(io.LimitReader(conn, maxHead))
	resp, err := http.ReadResponse(in, ask)
	if err != nil {
		return nil, err
	}
	if err := refused(resp); err != nil {
		return nil, err
	}
	if in.Buffered() > 0 {
		return nil, fmt.Errorf("it sent more than an answer")
	}
	return conn, nil
}

// refused is an error if a proxy did not connect. It has none of the proxy's own
// words, which may repeat what it was sent: the password, above all.
func refused(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("it answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
}

// proxyAddr is where a proxy listens.
func proxyAddr(proxy *url.URL) string {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[proxy.Scheme]
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}
