package containerd

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/runtime"
)

func TestTrap69HostileSocket(t *testing.T) {
	p := newPlace(t)
	d := p.startDaemon(t)
	image := staticImage(t, d.ctx, d.server.Client())

	// A socket of the host that must never be connected to.
	bait := filepath.Join(p.root, "bait.sock")
	l, err := net.Listen("unix", bait)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	caught := make(chan struct{})
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
			close(caught)
		}
	}()

	const socket = "/run/exec-server/io/agent.sock"
	for name, replace := range map[string]func(t *testing.T, s *sandbox){
		"symlink": func(t *testing.T, s *sandbox) {
			askOf(t, s, "!remove "+socket)
			if err := os.Symlink(bait, filepath.Join(d.stateDir(s.task.ID()).io(), "agent.sock")); err != nil {
				t.Fatal(err)
			}
		},
		"symlink made inside": func(t *testing.T, s *sandbox) {
			c, _ := peerOf(t, s)
			if got := ask(t, c, "!remove "+socket); got != "ok" {
				t.Fatal(got)
			}
			if got := ask(t, c, "!symlink "+bait+" "+socket); got != "ok" {
				t.Fatal(got)
			}
		},
		"listener": func(t *testing.T, s *sandbox) {
			if got := askOf(t, s, "!impostor"); got != "ok" {
				t.Fatal(got)
			}
		},
		"file": func(t *testing.T, s *sandbox) {
			c, _ := peerOf(t, s)
			ask(t, c, "!remove "+socket)
			if got := ask(t, c, "!write "+socket+" x"); got != "ok" {
				t.Fatal(got)
			}
		},
		"host's socket": func(t *testing.T, s *sandbox) {
			path := filepath.Join(d.stateDir(s.task.ID()).io(), "agent.sock")
			if err := errors.Join(os.Remove(path), unix.Mknod(path, unix.S_IFSOCK|0o666, 0)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := d.create(t, runtime.Spec{Name: "hostile", Image: image})
			replace(t, s)
			if err := s.Serve(d.ctx, nil, helloOf("x")); !errors.Is(err, errImpostor) {
				t.Errorf("serve: %v", err)
			}
		})
	}
	select {
	case <-caught:
		t.Error("the daemon connected to a socket of the host")
	case <-time.After(50 * time.Millisecond):
	}
}
