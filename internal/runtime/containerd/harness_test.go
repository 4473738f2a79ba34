package containerd

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/leakcheck"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/runtime"
	"github.com/exec-server/exec-server/internal/testroot"
)

// place is where a test's daemon keeps what it has.
type place struct{ root, state string }

// newPlace returns directories that are removed, and checks at the end of the
// test that nothing else was left on the machine.
func newPlace(t *testing.T) place {
	t.Helper()
	testroot.Need(t)
	top := "/run/exec-server-test"
	if err := os.MkdirAll(top, 0o711); err != nil {
		t.Fatal(err)
	}
	p := place{root: t.TempDir(), state: fmt.Sprintf("%s/%012x", top, time.Now().UnixNano()&0xffffffffffff)}
	before := p.look(t)
	t.Cleanup(func() {
		if t.Failed() {
			p.clear()
		}
		if diff := leakcheck.Diff(before, p.look(t)); diff != "" {
			t.Errorf("left behind:\n%s", diff)
		}
		os.RemoveAll(p.state)
		os.Remove(top)
	})
	return p
}

// clear removes what a test left that failed in the midst of something.
func (p place) clear() {
	d, err := p.open(zerolog.Nop(), testAgent)
	if err != nil {
		return
	}
	adopted, _ := d.Adopt(d.ctx)
	for _, s := range adopted {
		_ = s.Remove(d.ctx)
	}
	_ = d.Close()
}

// look takes stock of what the daemon may have left on the machine.
func (p place) look(t *testing.T) leakcheck.State {
	t.Helper()
	state, err := leakcheck.Scope{
		Paths:     []string{p.state, filepath.Join(p.root, taskPlugin, DefaultNamespace)},
		Depth:     4,
		Cgroup:    "exec-server-" + instance(p.state),
		Processes: []string{p.state, p.root},
	}.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// daemon is a server and its runtime.
type daemon struct {
	*Runtime
	server *Server
	ctx    context.Context
}

// startDaemon starts one, without adopting anything. The test ends it.
func (p place) startDaemon(t *testing.T) *daemon {
	t.Helper()
	d, err := p.open(zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel), testAgent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

func (p place) open(log zerolog.Logger, agent []byte) (*daemon, error) {
	ctx := context.Background()
	server, err := Start(ctx, ServerOptions{Root: p.root, State: p.state, Log: log})
	if err != nil {
		return nil, err
	}
	r, err := New(Options{Server: server, Root: p.root, State: p.state, AgentBinary: agent, Network: openExit, Log: log})
	if err != nil {
		server.Stop()
		return nil, err
	}
	return &daemon{r, server, r.with(ctx)}, nil
}

// create makes a sandbox. The test removes it.
func (d *daemon) create(t *testing.T, spec runtime.Spec) *sandbox {
	t.Helper()
	at := time.Now()
	s, err := d.Create(d.ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("create %s: %d ms", spec.Name, time.Since(at).Milliseconds())
	t.Cleanup(func() { d.remove(t, s) })
	return s.(*sandbox)
}

func (d *daemon) remove(t *testing.T, s runtime.Sandbox) {
	t.Helper()
	at := time.Now()
	if err := s.Remove(d.ctx); err != nil {
		t.Error(err)
		return
	}
	t.Logf("remove %s: %d ms", s.Spec().Name, time.Since(at).Milliseconds())
	select {
	case <-s.Done():
	default:
		t.Error("a sandbox that was removed is not done")
	}
}

// activeSnapshots returns the file systems of containers.
func (d *daemon) activeSnapshots(t *testing.T) []string {
	t.Helper()
	var active []string
	err := d.client.SnapshotService(snapshotter).Walk(d.ctx, func(_ context.Context, info snapshots.Info) error {
		if info.Kind == snapshots.KindActive {
			active = append(active, info.Name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return active
}

// peerOf serves a connection and returns the harness's side of it, and what
// Serve will have returned.
func peerOf(t *testing.T, s runtime.Sandbox) (*proto.StreamConn, <-chan error) {
	t.Helper()
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() {
		conn := proto.NewStreamConn(theirs, proto.MaxRequest)
		served <- s.Serve(context.Background(), conn, proto.Hello{Peer: "the test", Concurrency: 1})
		conn.Close()
	}()
	t.Cleanup(func() { ours.Close() })
	return proto.NewStreamConn(ours, proto.MaxAnswer), served
}

// ask sends a message and returns the answer.
func ask(t *testing.T, c *proto.StreamConn, message string) string {
	t.Helper()
	if err := c.WriteFrames(proto.FrameOf([]byte(message))); err != nil {
		t.Fatalf("ask %q: %v", message, err)
	}
	f, err := c.ReadFrame()
	if err != nil {
		t.Fatalf("ask %q: %v", message, err)
	}
	return strings.TrimSpace(string(f.Body()))
}

// askOf is ask on a connection of its own.
func askOf(t *testing.T, s runtime.Sandbox, message string) string {
	t.Helper()
	c, served := peerOf(t, s)
	answer := ask(t, c, message)
	c.Close()
	if err := <-served; err != nil && err != io.ErrClosedPipe {
		t.Errorf("serve: %v", err)
	}
	return answer
}

func frame(text string) proto.Frame { return proto.FrameOf([]byte(text)) }

func helloOf(peer string) proto.Hello { return proto.Hello{Peer: peer, Concurrency: 1} }
