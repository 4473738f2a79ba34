// Package httpclient makes the HTTP requests of http/request. What an origin
// sees, to the byte, and what a harness gets are the reference executor's;
// net/http has neither the order of headers nor the spelling of their names, so
// that requests are written and heads are read here. Connections, TLS, chunks
// and compression are the libraries'.
package httpclient

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// maxRedirects are followed.
const maxRedirects = 10

// Client makes requests and keeps connections between them.
type Client struct {
	pool    pool
	proxies *proxies
	err     error // why no request can be made
}

// New returns a client that uses the proxies and the certificates that the
// process's environment names.
func New() *Client {
	c := &Client{proxies: proxiesOf(os.Getenv)}
	c.pool.roots, c.err = roots(os.Getenv)
	return c
}

// Response is the head of an answer, and its body, which has to be closed.
type Response struct {
	Status  int
	headers headers
	Body    *Body
}

// EachHeader calls f with all headers that can be told: values with other than
// visible ASCII cannot.
func (r *Response) EachHeader(f func(name, value string)) {
	for _, field := range r.headers {
		for _, v := range field.values {
			if isVisible(v) {
				f(field.name, v)
			}
		}
	}
}

func failed(format string, args ...any) error {
	return proto.Errorf(proto.CodeInternal, "http/request failed: "+format, args...)
}

// Do makes a request and returns when the head of the answer is there. The
// request ends with ctx. Errors are *proto.Error.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, error) {
	t, given, err := r.check()
	if err != nil {
		return nil, err
	}
	if c.err != nil {
		return nil, failed("%s", c.err)
	}
	ctx, cancel := context.WithCancel(ctx)
	if r.Timed {
		if r.Timeout <= 0 {
			cancel()
			return nil, failed("request timed out")
		}
		timed, stop := context.WithTimeout(ctx, r.Timeout)
		untimed := cancel
		ctx, cancel = timed, func() { stop(); untimed() }
	}
	resp, err := c.follow(ctx, r, t, given)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body.cancel = cancel
	return resp, nil
}

// hop is one of the requests that redirects make of one.
type hop struct {
	method  string
	target  *target
	proxy   *target
	headers headers
	body    []byte
	lent    bool // proxy-authorization is ours, not the harness's
}

func (c *Client) follow(ctx context.Context, r *Request, t *target, given headers) (*Response, error) {
	h := &hop{method: r.Method, target: t, body: r.Body, proxy: c.proxies.choose(t)}
	h.lent = h.auth() != "" && !given.has("proxy-authorization")
	h.headers = outgoing(t, given, h.auth())
	for redirects := 0; ; redirects++ {
		resp, err := c.send(ctx, h)
		if err != nil {
			return nil, failed("error sending request for url (%s)", t.text)
		}
		if !r.Follow || !h.redirect(resp) {
			resp.Body.decode(&resp.headers)
			return resp, nil
		}
		resp.Body.skip()
		switch s := h.target.scheme; {
		case s != "http" && s != "https":
			return nil, failed("redirect target uses unsupported URL scheme: %s", s)
		case redirects == maxRedirects:
			return nil, failed("too many redirects")
		}
		c.authorize(h)
	}
}

// auth is what the hop's proxy wants to see in the request itself.
func (h *hop) auth() string {
	if h.proxy != nil && h.target.scheme == "http" {
		return h.proxy.basic
	}
	return ""
}

// authorize chooses the proxy of the next hop. No origin gets to see the
// credentials for one.
func (c *Client) authorize(h *hop) {
	if h.lent {
		h.headers.remove("proxy-authorization")
	}
	h.proxy = c.proxies.choose(h.target)
	h.lent = h.auth() != "" && !h.headers.has("proxy-authorization")
	if h.lent {
		h.headers.add("proxy-authorization", h.auth())
	}
}

// redirect turns the hop into what the response says should be asked next, and
// tells whether it says so.
func (h *hop) redirect(resp *Response) bool {
	location := resp.headers.get("location")
	if !resp.headers.has("location") || !isVisible(location) {
		return false
	}
	post := false
	switch resp.Status {
	case 301, 302:
		post = h.method == "POST"
	case 303:
		post = h.method != "HEAD"
	case 307, 308:
	default:
		return false
	}
	next, err := h.target.follow(location)
	if err != nil {
		return false
	}
	if post {
		h.method, h.body = "GET", nil
		h.headers.remove("content-type", "content-length", "content-encoding", "transfer-encoding")
	}
	if !h.target.sameHost(next) {
		h.headers.remove("authorization", "cookie", "cookie2", "proxy-authorization", "www-authenticate")
		h.lent = false
	}
	if h.target.scheme != "https" || next.scheme == "https" {
		referer, _, _ := strings.Cut(h.target.text, "#")
		h.headers.set("referer", referer)
	}
	h.target = next
	return true
}

// send makes one request on an idle connection or a new one.
func (c *Client) send(ctx context.Context, h *hop) (*Response, error) {
	key := h.target.scheme + "://" + h.target.authority()
	if h.proxy != nil {
		key += " " + h.proxy.text + " " + h.proxy.basic
	}
	l := c.pool.get(key)
	if l == nil {
		var err error
		if l, err = c.pool.dial(ctx, h.target, h.proxy); err != nil {
			return nil, err
		}
		l.key = key
	}
	b := &Body{link: l, pool: &c.pool, ctx: ctx}
	b.stop = context.AfterFunc(ctx, func() { _ = l.tcp.SetDeadline(time.Unix(1, 0)) })
	resp, err := c.exchange(l, h, b)
	if err != nil {
		b.end(false)
		return nil, err
	}
	return resp, nil
}

func (c *Client) exchange(l *link, h *hop, b *Body) (*Response, error) {
	requestTarget := h.target.path
	switch {
	case h.method == "CONNECT":
		requestTarget = h.target.host + ":" + h.target.port
	case h.proxy != nil && h.target.scheme == "http":
		requestTarget = h.target.scheme + "://" + h.target.authority() + requestTarget
	}
	// The origin may answer before it has read everything, and close.
	whole, wrote := writeRequest(l, h.method, requestTarget, h.target.authority(), h.headers, h.body)
	head, err := readHead(l.in)
	if err != nil {
		return nil, errors.Join(wrote, err)
	}
	f, err := head.frame(h.method)
	if err != nil {
		return nil, err
	}
	b.keep = wrote == nil && whole && head.keeps(h.method, f, h.headers)
	b.frame(f)
	return &Response{Status: head.status, headers: head.headers, Body: b}, nil
}
