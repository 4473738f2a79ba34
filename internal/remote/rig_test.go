package remote_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/client"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote"
	"github.com/exec-server/exec-server/internal/remote/credential"
	"github.com/exec-server/exec-server/internal/remote/egress"
	"github.com/exec-server/exec-server/internal/remote/registry"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
	"github.com/exec-server/exec-server/internal/remote/socket"
)

// These tests have all of a link but the container, on one side, and a peer with
// the rest of the world on the other.

const key = "sk-test-0123456789"

// rig is a peer and what is needed to make links to it.
type rig struct {
	t    *testing.T
	peer *remotetest.Peer
	http *http.Client
	dial func(ctx context.Context, url string, header http.Header, limit int64) (*socket.Socket, error)
}

// newRig makes a rig on the loopback address.
func newRig(t *testing.T) *rig {
	t.Helper()
	out, err := egress.New(egress.Options{ProxyURL: "none"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.HTTP().CloseIdleConnections)
	return &rig{t, remotetest.New(t, remotetest.Options{}), out.HTTP(), out.Connect}
}

// inBubble runs f with a rig on a clock of its own, and pipes in place of the
// network and package egress.
func inBubble(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		pipes := remotetest.NewPipes()
		transport := &http.Transport{DialContext: pipes.Dial, DisableCompression: true}
		t.Cleanup(transport.CloseIdleConnections)
		c := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		f(t, &rig{t, remotetest.New(t, remotetest.Options{Listener: pipes}), c, func(ctx context.Context, url string, header http.Header, limit int64) (*socket.Socket, error) {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return socket.Dial(ctx, c, url, header, limit)
		}})
	})
}

// link is a link that runs.
type link struct {
	*remote.Link
	log  *logBuffer
	stop func() error // once
	done chan struct{}
}

// maxLog bounds what is kept of a log, in bytes.
const maxLog = 64 << 10

type logBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf.Len() > maxLog {
		b.buf.Reset()
		b.buf.WriteString("...\n")
	}
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// options are those of a link with an agent behind it.
func (r *rig) options(id string, transport remote.Transport) remote.Options {
	r.t.Helper()
	source, err := credential.Bearer(key)
	if err != nil {
		r.t.Fatal(err)
	}
	a := agent.New(agent.Options{Cwd: "/", Home: "/", Env: os.Environ()})
	r.t.Cleanup(a.Close)
	return remote.Options{
		EnvironmentID: id, Transport: transport, Credential: source,
		Registry: &registry.Client{Base: r.peer.URL, EnvironmentID: id, Credential: source, HTTP: r.http},
		Dial:     r.dial,
		Serve:    func(_ context.Context, c proto.Conn, hello proto.Hello) { _ = a.Serve(c, hello) },
	}
}

// start runs a link until the test ends.
func (r *rig) start(opts remote.Options, change ...func(*remote.Link)) *link {
	r.t.Helper()
	l := &link{log: &logBuffer{}, done: make(chan struct{})}
	opts.Log = zerolog.New(l.log).Level(zerolog.InfoLevel)
	var err error
	if l.Link, err = remote.New(opts); err != nil {
		r.t.Fatal(err)
	}
	for _, f := range change {
		f(l.Link)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended error
	go func() {
		defer close(l.done)
		ended = l.Run(ctx)
	}()
	l.stop = func() error {
		cancel()
		select {
		case <-l.done:
			return ended
		case <-time.After(patience):
			return errors.New("the link does not end")
		}
	}
	r.t.Cleanup(func() {
		if err := l.stop(); err != nil && !opts.ExitOnRefusal {
			r.t.Errorf("the link ends with %v", err)
		}
		if strings.Contains(l.log.String(), key) {
			r.t.Error("the credential is in the log")
		}
		if r.t.Failed() {
			r.t.Logf("the log of the link:\n%s", l.log)
		}
	})
	return l
}

func (r *rig) noise(id string) *link { return r.start(r.options(id, remote.Noise)) }

// patience is for what does not take long.
const patience = time.Minute

// await waits for c, or fails the test and says what it waited for.
func await(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Errorf("%s does not come", what)
	}
}

// soon is a context for what does not take long.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// harness is a client with a session, and what its processes printed.
type harness struct {
	t       testing.TB
	c       *client.Client
	session string

	mu     sync.Mutex // guards all below
	n      int
	output map[string]string
	closed map[string]chan struct{}
}

func (r *rig) open(id, resume string) *harness {
	r.t.Helper()
	h, err := r.tryOpen(id, resume)
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func (r *rig) tryOpen(id, resume string) (*harness, error) {
	h, err := r.join(id, resume)
	if h != nil {
		r.t.Cleanup(func() {
			_ = h.c.Close()
			await(r.t, h.c.Done(), "the end of a connection that was closed")
		})
	}
	return h, err
}

// join opens a connection which the caller closes. There may be one with an error.
func (r *rig) join(id, resume string) (*harness, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	conn, err := r.peer.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	h := &harness{t: r.t, output: map[string]string{}, closed: map[string]chan struct{}{}}
	h.c = client.New(conn, h.notified)
	h.session, err = h.c.Initialize(ctx, "test", resume)
	return h, err
}

func (h *harness) end(id string) chan struct{} {
	if h.closed[id] == nil {
		h.closed[id] = make(chan struct{})
	}
	return h.closed[id]
}

func (h *harness) notified(method string, params proto.Value) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := params.Get("processId").Str()
	switch method {
	case "process/output":
		text, err := base64.StdEncoding.DecodeString(params.Get("chunk").Str())
		if err != nil {
			h.t.Error(err)
		}
		h.output[id] += string(text)
	case "process/closed":
		close(h.end(id))
	}
}

func (h *harness) call(method string, params any) (proto.Value, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	return h.c.Call(ctx, method, params)
}

// alive fails the test if the connection is not.
func (h *harness) alive() {
	h.t.Helper()
	if v, err := h.call("environment/status", nil); err != nil || v.Get("status").Str() != "ready" {
		h.t.Errorf("environment/status: %q, %v", v.Get("status").Str(), err)
	}
}

// start starts a script.
func (h *harness) start(script string) (id string) {
	h.t.Helper()
	h.mu.Lock()
	h.n++
	id = fmt.Sprint(h.session, "-", h.n)
	h.mu.Unlock()
	_, err := h.call("process/start", map[string]any{
		"processId": id, "argv": []string{"/bin/sh", "-c", script}, "cwd": "file:///", "env": map[string]string{"PATH": "/usr/bin:/bin"}, "tty": false,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// sh runs a script and returns what it printed.
func (h *harness) sh(script string) string {
	h.t.Helper()
	id := h.start(script)
	h.mu.Lock()
	end := h.end(id)
	h.mu.Unlock()
	select {
	case <-end:
	case <-h.c.Done():
		h.t.Errorf("the connection ends while %.40q runs", script)
	case <-time.After(patience):
		h.t.Errorf("%.40q does not end", script)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.output[id]
}
