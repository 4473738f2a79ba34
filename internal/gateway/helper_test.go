package gateway

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/runtime"
)

// inBubble runs a test with a gateway, and a clock of its own.
func inBubble(t *testing.T, opts Options, f func(*testing.T, *memory, *Gateway)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		opts.Runtime, opts.Log = m, zerolog.Nop()
		opts.Spec = func(name string) runtime.Spec { return runtime.Spec{Name: name} }
		if opts.Default == "" {
			opts.Default = "default"
		}
		g := New(opts, nil)
		t.Cleanup(func() {
			if err := g.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		f(t, m, g)
	})
}

// harness is a connection to a gateway.
type harness struct {
	t *testing.T
	c proto.Conn
}

func connect(t *testing.T, g *Gateway, name string) *harness {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		c := proto.NewStreamConn(theirs, proto.MaxRequest)
		g.Serve(context.Background(), c, name, "exec-server websocket 127.0.0.1:5")
		_ = c.Close()
	}()
	t.Cleanup(func() { _ = ours.Close() })
	return &harness{t, proto.NewStreamConn(ours, proto.MaxAnswer)}
}

func (h *harness) send(text string) {
	h.t.Helper()
	if err := h.c.WriteFrames(proto.FrameOf([]byte(text))); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) answer() string {
	h.t.Helper()
	f, err := h.c.ReadFrame()
	if err != nil {
		h.t.Fatal(err)
	}
	return string(f.Body())
}

func (h *harness) expect(message, want string) {
	h.t.Helper()
	h.send(message)
	if got := h.answer(); got != want {
		h.t.Errorf("%s\n got %s\nwant %s", message, got, want)
	}
}

func (h *harness) initialize(resume string) (id string) {
	h.t.Helper()
	params := `{"clientName":"x"}`
	if resume != "" {
		params = `{"clientName":"x","resumeSessionId":"` + resume + `"}`
	}
	h.send(`{"id":1,"method":"initialize","params":` + params + `}`)
	text := h.answer()
	v, err := proto.Parse([]byte(text))
	if err != nil || v.Get("result").Kind != proto.Object {
		h.t.Fatalf("initialize: %s", text)
	}
	h.send(`{"method":"initialized"}`)
	h.expect(`{"id":2,"method":"environment/status"}`, `{"id":2,"result":{"status":"ready"}}`)
	return v.Get("result").Get("sessionId").Str()
}

// gone checks that the connection ends without another word.
func (h *harness) gone() {
	h.t.Helper()
	if f, err := h.c.ReadFrame(); err == nil {
		h.t.Errorf("the last word is %s", f.Body())
	}
}

// expire lets the time of a detached session pass.
func expire() {
	time.Sleep(80 * time.Second)
	synctest.Wait()
}
