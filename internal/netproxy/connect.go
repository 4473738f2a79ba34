package netproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

// connect serves CONNECT. As the reference's, the answer comes before the
// connection is tried; one that fails is a tunnel that ends.
func (h *handler) connect(w http.ResponseWriter, r *http.Request) {
	req := request{protocol: policy.Connect, method: r.Method, client: r.RemoteAddr}
	var ok bool
	if req.host, req.port, ok = splitAuthority(r.URL.Host, 80); !ok {
		text(w, http.StatusBadRequest, "missing authority")
		return
	}
	to, d := h.p.decide(r.Context(), &req)
	if d.Verdict == "allow" && h.p.limited && h.p.masked == nil {
		d = h.p.refuse(&req, byMode, policy.MITMRequired)
	}
	if d.Verdict != "allow" {
		blocked(w, d)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	// The server's own deadline for the next request's head is still set.
	_ = client.SetDeadline(time.Time{})
	_, err = fmt.Fprintf(client, "%s 200 OK\r\ndate: %s\r\n\r\n", r.Proto, time.Now().UTC().Format(http.TimeFormat))
	var origin net.Conn
	if err == nil && h.p.opens(&req) {
		h.p.open(h.ctx, &readAhead{Conn: client, ahead: buffered.Reader}, to, &req, nil)
		return
	}
	if err == nil {
		origin, err = h.p.reach(h.ctx, to, &req)
	}
	if err == nil {
		err = flushTo(origin, buffered.Reader)
	}
	if err != nil {
		_ = client.Close()
		if origin != nil {
			_ = origin.Close()
		}
		return
	}
	tunnel(h.ctx, client, origin)
}

// flushTo sends what was read ahead of the tunnel.
func flushTo(conn net.Conn, r *bufio.Reader) error {
	ahead, _ := r.Peek(r.Buffered())
	_, err := conn.Write(ahead)
	return err
}

// reach opens a tunnel's other end, through another proxy if one is set.
func (p *Proxy) reach(ctx context.Context, to route, req *request) (net.Conn, error) {
	authority := net.JoinHostPort(req.host.String(), fmt.Sprint(req.port))
	up, err := p.upstream(&url.URL{Scheme: "https", Host: authority})
	if err != nil {
		return nil, err
	}
	if up == nil {
		return p.dial(ctx, to)
	}
	return p.through(ctx, up, authority)
}

var errUpstream = errors.New("the upstream proxy refused")

// through asks another proxy for a tunnel.
func (p *Proxy) through(ctx context.Context, up *url.URL, authority string) (net.Conn, error) {
	if up.Scheme != "http" {
		return nil, fmt.Errorf("upstream proxies are spoken to in plain HTTP, not %s", up.Scheme)
	}
	port := up.Port()
	if port == "" {
		port = "80"
	}
	conn, err := p.dialer(ctx, "tcp", net.JoinHostPort(up.Hostname(), port))
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(headerTimeout))
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: authority}, Host: authority, Header: http.Header{"User-Agent": nil}}
	if up.User != nil {
		password, _ := up.User.Password()
		basic := http.Request{Header: http.Header{}}
		basic.SetBasicAuth(up.User.Username(), password)
		r.Header.Set("Proxy-Authorization", basic.Header.Get("Authorization"))
	}
	// Nothing may be read beyond the head: what follows is the tunnel's.
	var answer *http.Response
	if err = r.Write(conn); err == nil {
		answer, err = http.ReadResponse(bufio.NewReader(&headReader{conn: conn, left: maxHeader}), r)
	}
	if err == nil {
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			err = errUpstream
		}
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

// headReader gives one byte at a time, so that a reader with a buffer takes no
// more than the head of a message.
type headReader struct {
	conn net.Conn
	left int
}

// Read implements io.Reader.
func (h *headReader) Read(b []byte) (int, error) {
	if h.left--; h.left < 0 {
		return 0, errUpstream
	}
	return h.conn.Read(b[:min(1, len(b))])
}
