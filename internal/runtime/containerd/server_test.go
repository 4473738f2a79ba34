package containerd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/runtime"
)

func TestServer(t *testing.T) {
	p := newPlace(t)
	var log strings.Builder
	ctx := namespaces.WithNamespace(t.Context(), DefaultNamespace)
	opts := ServerOptions{Root: p.root, State: p.state, Log: zerolog.New(&log).Level(zerolog.InfoLevel)}
	for range 2 { // one after the other in one process
		s, err := Start(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Start(t.Context(), opts); !errors.Is(err, ErrInUse) {
			t.Errorf("a second server on the store: %v", err)
		}
		if info, err := os.Stat(s.Address()); err != nil || info.Mode() != os.ModeSocket|0o600 {
			t.Errorf("the API's socket: %v, %v", info, err)
		}
		if info, err := os.Stat(p.state); err != nil || info.Mode().Perm() != 0o711 {
			t.Errorf("the state directory: %v, %v", info, err)
		}
		c, err := Connect(t.Context(), s.Address(), "")
		if err != nil {
			t.Fatal(err)
		}
		image := staticImage(t, ctx, c)
		if _, err := s.Client().GetImage(ctx, image); err != nil {
			t.Errorf("an image that came through the socket: %v", err)
		}
		c.Close()
		s.Stop()
		s.Stop()
	}
	if log.Len() > 0 {
		t.Errorf("containerd's log is not quiet:\n%s", log.String())
	}
}

func TestConnectFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no.sock")
	_, err := Connect(t.Context(), path, "")
	if err == nil || !strings.Contains(err.Error(), "no containerd answers at "+path) {
		t.Errorf("connect to nothing: %v", err)
	}
	for version, want := range map[string]bool{
		"v1.7.22": true, "1.6.20~ds1": false, "v2.4.2": true, "1.10.0": true, "2.0.0-rc.1": true, "": false, "x": false, "2": false,
	} {
		if newEnough(version) != want {
			t.Errorf("version %q: %t", version, !want)
		}
	}
}

// TestExistingContainerd uses a containerd of another process's kind: through
// its socket, with the shim that it finds in its PATH.
func TestExistingContainerd(t *testing.T) {
	p := newPlace(t)
	d := p.startDaemon(t) // it plays the existing containerd
	t.Setenv("PATH", filepath.Dir(d.server.shim)+":"+os.Getenv("PATH"))
	c, err := Connect(t.Context(), d.server.Address(), "other-namespace")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	q := place{root: t.TempDir(), state: p.state + "/x"}
	open := func() *Runtime {
		r, err := New(Options{
			Client: c, Namespace: "other-namespace", Root: q.root, State: q.state,
			AgentBinary: testAgent, Network: openExit, Log: zerolog.New(zerolog.NewTestWriter(t)),
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := open()
	ctx := r.with(t.Context())
	spec := runtime.Spec{Name: "guest", Image: staticImage(t, ctx, c), MemoryBytes: 200 << 20}
	s, err := r.Create(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := askOf(t, s, "hello"); got != "hello" {
		t.Error(got)
	}
	if _, err := r.Create(ctx, runtime.Spec{Name: "broken", Image: spec.Image, AgentArgs: []string{"--fail", "x"}}); err == nil {
		t.Error("a broken agent was taken")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}

	r = open()
	adopted, err := r.Adopt(ctx)
	if err != nil || len(adopted) != 1 {
		t.Fatalf("adopted %v, %v", adopted, err)
	}
	if got := askOf(t, adopted[0], "again"); got != "again" {
		t.Error(got)
	}
	if err := adopted[0].Remove(ctx); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if left, err := c.Containers(ctx); len(left) > 0 || err != nil {
		t.Errorf("%d containers are left, %v", len(left), err)
	}
	if err := os.Remove(q.state); err != nil {
		t.Error(err)
	}
	// This is the existing containerd's own, where runc was told nothing.
	_ = os.Remove("/run/containerd/runc/other-namespace")
}
