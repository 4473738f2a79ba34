package containerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/runtime"
)

func TestLife(t *testing.T) {
	p := newPlace(t)
	d := p.startDaemon(t)
	image := busyboxImage(t, d.ctx, d.server.Client())
	spec := runtime.Spec{
		Name: "Life.of_1", Image: image, Env: []string{"FROM=spec", "MORE=x=y"},
		CPUs: 1, MemoryBytes: 256 << 20, Pids: 100, ShmBytes: 32 << 20, AgentArgs: []string{"--mute=false"},
	}
	s := d.create(t, spec)

	c, served := peerOf(t, s)
	for want, question := range map[string]string{
		"hello there": "hello there",
		"user=user cwd=/tmp workspace=/workspace pid=1": "!args",
		"PATH=/bin\nFROM=spec\nMORE=x=y\nHOME=/root":    "!env", // HOME is of runc
		"life-of-1": "!read /etc/hostname",
		"":          "!exec /bin/ls /run/exec-server/absent",
		"ok":        "!write /workspace/file text",
	} {
		if got := ask(t, c, question); got != want && want != "" {
			t.Errorf("%s: %q, not %q", question, got, want)
		}
	}
	if got := ask(t, c, "!hello"); !strings.Contains(got, `"peer":"the test"`) {
		t.Errorf("hello: %s", got)
	}
	if got := ask(t, c, "!read /etc/resolv.conf"); !strings.Contains(got, "nameserver 192.0.0.1\noptions timeout:1 attempts:1") {
		t.Errorf("resolv.conf: %s", got)
	}
	c.Close()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}

	if _, err := d.Create(d.ctx, spec); !errors.Is(err, ErrExists) {
		t.Errorf("a second sandbox of the name: %v", err)
	}
	d.remove(t, s)
	if err := s.Serve(d.ctx, nil, helloOf("x")); !errors.Is(err, ErrEnded) {
		t.Errorf("serve after the end: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(p.root, "environments", spec.Name, "workspace/file")); string(text) != "text" {
		t.Errorf("the workspace lost its file: %v", err)
	}
	if got := askOf(t, d.create(t, spec), "!read /workspace/file"); got != "text" {
		t.Errorf("the workspace was not used again: %s", got)
	}
}

func TestTwoAtOnce(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	image := staticImage(t, d.ctx, d.server.Client())
	a := d.create(t, runtime.Spec{Name: "a", Image: image})
	b := d.create(t, runtime.Spec{Name: "b", Image: image})
	if a.ids == b.ids {
		t.Errorf("two environments have the ids from %d", a.ids.base)
	}
	if got := askOf(t, a, "!args"); got != "user=0 cwd=/workspace workspace=/workspace pid=1" {
		t.Errorf("arguments: %s", got)
	}
	if got := askOf(t, a, "!env"); !strings.Contains(got, "PATH=/usr/local/sbin:") {
		t.Errorf("environment: %s", got)
	}
	for _, s := range []*sandbox{a, b} {
		if got := askOf(t, s, "!write /workspace/whose "+s.spec.Name); got != "ok" {
			t.Error(got)
		}
	}
	if got := askOf(t, a, "!read /workspace/whose"); got != "a" {
		t.Errorf("a's workspace has %q", got)
	}
	d.remove(t, a)
	if got := askOf(t, b, "still there"); got != "still there" {
		t.Error(got)
	}
}

func TestEphemeral(t *testing.T) {
	p := newPlace(t)
	d := p.startDaemon(t)
	image := staticImage(t, d.ctx, d.server.Client())
	kept := d.create(t, runtime.Spec{Name: "kept", Image: image})
	secret := filepath.Join(p.root, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	layers := filepath.Join(p.root, "io.containerd.snapshotter.v1.overlayfs/snapshots")
	before, err := os.ReadDir(layers)
	if err != nil {
		t.Fatal(err)
	}
	s := d.create(t, runtime.Spec{Name: "gone", Image: image, Ephemeral: true})
	askOf(t, s, "!symlink "+p.root+" /workspace/link")
	d.remove(t, s)
	diff := eventually(func() string {
		if after, err := os.ReadDir(layers); err != nil || len(after) != len(before) {
			return fmt.Sprintf("there were %d layers, and now %d, %v", len(before), len(after), err)
		}
		return ""
	})
	if diff != "" {
		t.Error(diff)
	}
	if _, err := os.Lstat(filepath.Join(p.root, "environments/gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the environment is left: %v", err)
	}
	if _, err := os.Lstat(secret); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	d.remove(t, kept)
	if _, err := d.Create(d.ctx, runtime.Spec{Name: "kept", Image: image, Ephemeral: true}); err == nil {
		t.Error("an ephemeral sandbox took a workspace that is kept")
	}
}

func TestEndByItself(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	image := staticImage(t, d.ctx, d.server.Client())
	s := d.create(t, runtime.Spec{Name: "mortal", Image: image})
	c, served := peerOf(t, s)
	if got := ask(t, c, "x"); got != "x" {
		t.Fatal(got)
	}
	at := time.Now()
	if err := unix.Kill(s.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
		t.Logf("noticed after %d ms", time.Since(at).Milliseconds())
	case <-time.After(2 * time.Second):
		t.Fatal("the end was not noticed")
	}
	if err := <-served; !errors.Is(err, ErrEnded) {
		t.Errorf("serve: %v", err)
	}
	// It is removed in the background; a new one waits for that.
	if got := askOf(t, d.create(t, runtime.Spec{Name: "mortal", Image: image}), "again"); got != "again" {
		t.Error(got)
	}
}

func TestShimKilled(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	image := staticImage(t, d.ctx, d.server.Client())
	s := d.create(t, runtime.Spec{Name: "shimless", Image: image})
	helpers, err := d.server.helpers()
	if err != nil || len(helpers) != 1 {
		t.Fatalf("found the helpers %v, %v", helpers, err)
	}
	for pid := range helpers {
		if err := d.server.killHelper(pid, s.task.ID()); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-s.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the end was not noticed")
	}
	d.remove(t, s)
}

func TestServeEnds(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	image := staticImage(t, d.ctx, d.server.Client())
	s := d.create(t, runtime.Spec{Name: "ends", Image: image})
	c, served := peerOf(t, s)
	if err := c.WriteFrames(frame("!close")); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Errorf("when the agent ends a connection: %v", err)
	}
	if got := askOf(t, s, "next"); got != "next" {
		t.Error(got)
	}
	big := strings.Repeat("x", 20<<20)
	if got := askOf(t, s, big); got != big {
		t.Errorf("a large frame came back with %d bytes", len(got))
	}
}

func TestCreateFails(t *testing.T) {
	p := newPlace(t)
	d := p.startDaemon(t)
	image := staticImage(t, d.ctx, d.server.Client())
	for name, test := range map[string]struct {
		spec runtime.Spec
		is   error
		says string
	}{
		"image":   {runtime.Spec{Name: "x", Image: "no/such:1"}, ErrImageMissing, `image "no/such:1" is not in the store; "exec-server image ls" lists what is`},
		"image2":  {runtime.Spec{Name: "x", Image: "no/such:1"}, errdefs.ErrNotFound, ""},
		"name":    {runtime.Spec{Name: "../x", Image: image}, nil, "is not a name"},
		"dot":     {runtime.Spec{Name: ".x", Image: image}, nil, "is not a name"},
		"agent":   {runtime.Spec{Name: "x", Image: image, AgentArgs: []string{"--fail", "no luck today"}}, nil, "exited with status 3 before it answered: first line | no luck today"},
		"limit":   {runtime.Spec{Name: "x", Image: image, MemoryBytes: 1}, nil, "the container"},
		"working": {runtime.Spec{Name: "x", Image: image}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := d.Create(d.ctx, test.spec)
			if name == "working" {
				if err != nil {
					t.Fatal(err)
				}
				d.remove(t, s)
				os.RemoveAll(filepath.Join(p.root, "environments/x"))
				return
			}
			if err == nil {
				d.remove(t, s)
				t.Fatal("it was made")
			}
			t.Log(err)
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("it is not a %v", test.is)
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("it does not say %q", test.says)
			}
			if left, _ := os.ReadDir(filepath.Join(p.root, "environments")); len(left) > 0 {
				t.Errorf("the environment %s is left", left[0].Name())
			}
			if left, _ := os.ReadDir(filepath.Join(p.state, "e")); len(left) > 0 {
				t.Errorf("the shared directory %s is left", left[0].Name())
			}
			if left, err := d.client.Containers(d.ctx); len(left) > 0 || err != nil {
				t.Errorf("%d containers are left, %v", len(left), err)
			}
			if got := d.activeSnapshots(t); len(got) > 0 {
				t.Errorf("the snapshots %q are left", got)
			}
		})
	}
}

func TestCreateCancelled(t *testing.T) {
	p := newPlace(t)
	d := p.startDaemon(t)
	spec := runtime.Spec{Name: "never", Image: staticImage(t, d.ctx, d.server.Client())}
	for delay := time.Duration(0); delay < 100*time.Millisecond; delay += 9 * time.Millisecond {
		ctx, cancel := context.WithTimeout(d.ctx, delay)
		s, err := d.Create(ctx, spec)
		cancel()
		if err == nil {
			d.remove(t, s)
			_ = d.envs.remove("never")
		}
		for _, dir := range []string{filepath.Join(p.root, "environments"), filepath.Join(p.state, "e"), d.server.bundles()} {
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("after %s, %s is left in %s", delay, left[0].Name(), dir)
			}
		}
		if left, err := d.client.Containers(d.ctx); len(left) > 0 || err != nil {
			t.Errorf("after %s, %d containers are left, %v", delay, len(left), err)
		}
		if got := d.activeSnapshots(t); len(got) > 0 {
			t.Errorf("after %s, the snapshots %q are left", delay, got)
		}
		if got := d.cgroup.containers(); len(got) > 0 {
			t.Errorf("after %s, the cgroups of %v are left", delay, got)
		}
	}
	if got := askOf(t, d.create(t, spec), "hello"); got != "hello" {
		t.Error(got)
	}
}

func TestManyAtOnce(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	image := staticImage(t, d.ctx, d.server.Client())
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			spec := runtime.Spec{Name: fmt.Sprintf("many-%d", i), Image: image, Ephemeral: i%2 == 0, MemoryBytes: 100 << 20}
			for range 2 {
				s, err := d.Create(d.ctx, spec)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Serve(d.ctx, ended{}, helloOf("x")); err != nil {
					t.Error(err)
				}
				var removals sync.WaitGroup
				for range 2 {
					removals.Go(func() {
						if err := s.Remove(d.ctx); err != nil {
							t.Error(err)
						}
					})
				}
				removals.Wait()
			}
		})
	}
	wg.Wait()
}

// ended is a connection whose peer has gone away in an orderly manner.
type ended struct{ proto.Conn }

func (ended) ReadFrame() (proto.Frame, error) { return nil, io.EOF }

func TestNothingAccumulates(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	image := staticImage(t, d.ctx, d.server.Client())
	round := func() (files, goroutines int) {
		for range 3 {
			s := d.create(t, runtime.Spec{Name: "again", Image: image})
			for range 10 {
				askOf(t, s, "hello")
			}
			d.remove(t, s)
		}
		_, err := d.Create(d.ctx, runtime.Spec{Name: "again", Image: image, AgentArgs: []string{"--fail", "x"}})
		if err == nil {
			t.Error("a broken agent was taken")
		}
		time.Sleep(200 * time.Millisecond)
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(open), goruntime.NumGoroutine()
	}
	round() // some things are made once
	files, goroutines := round()
	round()
	moreFiles, moreGoroutines := round()
	// Some come and go; what is lost with each sandbox or connection adds up.
	if moreFiles > files+3 || moreGoroutines > goroutines+3 {
		t.Errorf("files %d, then %d; goroutines %d, then %d", files, moreFiles, goroutines, moreGoroutines)
	}
}
