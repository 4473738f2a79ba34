package remote_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

func TestDirectConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.start(r.options("e", remote.Direct))
	h := r.open("e", "")
	h.alive()
	if _, err := r.peer.Open(soon(t), "e"); !errors.Is(err, remotetest.ErrBusy) {
		t.Errorf("a second connection: %v", err)
	}
	if got := h.sh("printf hello"); got != "hello" {
		t.Errorf("the shell says %q", got)
	}
	_ = h.c.Close()
	again := r.open("e", h.session)
	again.alive()
	calls := r.peer.Calls("e")
	if calls[0].Kind != remotetest.RegisterDirect || calls[0].Body != `{"transport":"direct_jsonrpc_v1"}` || headers(calls[0]) != jsonHeaders {
		t.Errorf("it registers with %s and\n%s", calls[0].Body, headers(calls[0]))
	}
	// The credential here is a token, in place of a signature.
	if got, want := headers(calls[1]), "authorization: Bearer "+key+"\nconnection: Upgrade\nsec-websocket-version: 13\nupgrade: websocket"; got != want || len(calls) != 3 {
		t.Errorf("%d calls; it connects with\n%s", len(calls), got)
	}
	if s := l.Status(); s.Reconnects != 1 || s.Streams != 1 {
		t.Errorf("the status is %+v", s)
	}
	if odd := r.peer.Odd(); odd != nil {
		t.Error(strings.Join(odd, "\n"))
	}
}

func TestWhatIsNoMessageOverDirect(t *testing.T) {
	r := newRig(t)
	r.start(r.options("e", remote.Direct))
	c, err := r.peer.Open(soon(t), "e")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.WriteFrames(proto.Frame(append(proto.NewFrame(0), `[]`...)).Seal()); err != nil {
		t.Fatal(err)
	}
	f, err := c.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(f.Body()); !strings.Contains(text, `"code":-32600,`) || !strings.Contains(text, " from direct exec-server websocket ws://") || strings.Contains(text, "?") {
		t.Errorf("it answers %s", text)
	}
}
