package httpclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

const patience = 20 * time.Second

// rawOrigin is a server that keeps the bytes of each request, and answers what it
// is told.
type rawOrigin struct {
	t        *testing.T
	listener net.Listener
	answer   func(path string, conn net.Conn) // writes, and may close

	mu       sync.Mutex // guards all below
	requests []string
	conns    int
}

func newOrigin(t *testing.T, answer func(path string, conn net.Conn)) *rawOrigin {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if answer == nil {
		answer = func(_ string, c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }
	}
	o := &rawOrigin{t: t, listener: l, answer: answer}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			o.mu.Lock()
			o.conns++
			o.mu.Unlock()
			go o.serve(c)
		}
	}()
	return o
}

func (o *rawOrigin) url(path string) string { return "http://" + o.listener.Addr().String() + path }

func (o *rawOrigin) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		var all []byte
		length := 0
		for !bytes.HasSuffix(all, []byte("\r\n\r\n")) {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			all = append(all, line...)
			if name, value, ok := strings.Cut(string(line), ": "); ok && name == "content-length" {
				length, _ = strconv.Atoi(strings.TrimSpace(value))
			}
			if bytes.Equal(line, []byte("transfer-encoding: chunked\r\n")) {
				length = -1
			}
		}
		if length < 0 { // one chunk, as the client sends it
			for !bytes.HasSuffix(all, []byte("0\r\n\r\n")) {
				b, err := in.ReadByte()
				if err != nil {
					return
				}
				all = append(all, b)
			}
		}
		body := make([]byte, max(0, length))
		_, err := io.ReadFull(in, body)
		path, _, _ := strings.Cut(strings.SplitN(string(all), " ", 3)[1], "?")
		o.mu.Lock()
		o.requests = append(o.requests, strings.ReplaceAll(string(all)+string(bytes.TrimRight(body, "\x00")), o.listener.Addr().String(), "ORIGIN"))
		o.mu.Unlock()
		if err != nil {
			return
		}
		o.answer(path, c)
	}
}

// seen returns the requests since the last call.
func (o *rawOrigin) seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.requests
	o.requests = nil
	return all
}

// client returns a client that knows of the variables given.
func client(env map[string]string) *Client {
	return &Client{proxies: proxiesOf(func(name string) string { return env[name] })}
}

type outcome struct {
	status  int
	headers string // NAME: VALUE; …
	body    string
	err     string // CODE MESSAGE
	bodyErr error
}

func do(t *testing.T, c *Client, r *Request) (out outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	resp, err := c.Do(ctx, r)
	if err != nil {
		e, ok := errors.AsType[*proto.Error](err)
		if !ok {
			t.Fatalf("%v is no *proto.Error", err)
		}
		return outcome{err: strconv.Itoa(e.Code) + " " + e.Message}
	}
	defer resp.Body.Close()
	out.status = resp.Status
	resp.EachHeader(func(name, value string) { out.headers += name + ": " + value + "; " })
	body, err := io.ReadAll(resp.Body)
	out.body, out.bodyErr = string(body), err
	if ctx.Err() != nil {
		t.Fatal("it takes too long")
	}
	return out
}

func get(url string, headers ...string) *Request {
	r := &Request{Method: http.MethodGet, URL: url, Follow: true}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Headers = append(r.Headers, Header{Name: headers[i], Value: headers[i+1]})
	}
	return r
}

// wire compares what the origin saw.
func (o *rawOrigin) wire(what string, want ...string) {
	o.t.Helper()
	got := o.seen()
	if len(got) != len(want) {
		o.t.Errorf("%s: %d requests, not %d: %q", what, len(got), len(want), got)
		return
	}
	for i := range want {
		if w := strings.ReplaceAll(want[i], "\n", "\r\n"); got[i] != w {
			o.t.Errorf("%s: request %d\n got %q\nwant %q", what, i, got[i], w)
		}
	}
}
