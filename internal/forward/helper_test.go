package forward

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote"
	"github.com/exec-server/exec-server/internal/remote/credential"
	"github.com/exec-server/exec-server/internal/remote/egress"
	"github.com/exec-server/exec-server/internal/remote/registry"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// patience bounds every wait of a test.
const patience = 30 * time.Second

// harness is one that comes through a peer's rendezvous and a forwarder to a
// server.
type harness struct {
	t    *testing.T
	ctx  context.Context
	peer *remotetest.Peer
	log  *strings.Builder // to be read when the link has ended
	end  func()
}

// forwarded starts a forwarder to a URL, behind a peer.
func forwarded(t *testing.T, url string) *harness {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	h := &harness{t: t, ctx: ctx, peer: remotetest.New(t, remotetest.Options{}), log: &strings.Builder{}}
	way, err := egress.New(egress.Options{ProxyURL: "none"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(Options{URL: url, Dial: way.Connect, Log: zerolog.New(h.log)})
	if err != nil {
		t.Fatal(err)
	}
	key, err := credential.APIKey("sk-test")
	if err != nil {
		t.Fatal(err)
	}
	link, err := remote.New(remote.Options{
		EnvironmentID: "env", Credential: key, Transport: remote.Noise, Dial: way.Connect, Serve: f.Serve,
		Registry: &registry.Client{Base: h.peer.URL, EnvironmentID: "env", Credential: key, HTTP: way.HTTP()},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- link.Run(ctx) }()
	stopped := false
	h.end = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		way.HTTP().CloseIdleConnections()
	}
	t.Cleanup(h.end)
	return h
}

func (h *harness) open() proto.Conn {
	h.t.Helper()
	c, err := h.peer.Open(h.ctx, "env")
	if err != nil {
		h.t.Fatal(err)
	}
	// A wait for a message ends with the test.
	context.AfterFunc(h.ctx, func() { _ = c.Close() })
	return c
}

func (h *harness) send(c proto.Conn, message string) {
	h.t.Helper()
	if err := c.WriteFrames(proto.FrameOf([]byte(message))); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) expect(c proto.Conn, message string) {
	h.t.Helper()
	f, err := c.ReadFrame()
	if err != nil {
		h.t.Fatal(err)
	}
	if got := string(f.Body()); got != message {
		h.t.Fatalf("%.200s is received; expected %.200s", got, message)
	}
}

// serve is a server that does with every connection as the test says.
func serve(t *testing.T, do func(ctx context.Context, ws *websocket.Conn)) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Authorization", "User-Agent", "X-Request-Id", "Sec-Websocket-Protocol", "Sec-Websocket-Extensions"} {
			if value := r.Header.Get(name); value != "" {
				t.Errorf("the server is sent %s: %s", name, value)
			}
		}
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(-1)
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		do(ctx, ws)
	}))
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http") + "/path?query=1"
}

// echo sends every message back.
func echo(ctx context.Context, ws *websocket.Conn) {
	for {
		kind, m, err := ws.Read(ctx)
		if err != nil || ws.Write(ctx, kind, m) != nil {
			return
		}
	}
}

// deaf is the URL of a place where nobody listens.
func deaf(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "ws://" + l.Addr().String()
}
