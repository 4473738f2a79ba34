package watch

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

// Whenever the path appears, either the watch is refused or it ends.
func TestNothingIsMissedBetweenLookAndWatch(t *testing.T) {
	s := newScene(t)
	path := filepath.Join(s.dir, "a/b/x")
	for range 200 {
		var made sync.WaitGroup
		made.Go(func() {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
				t.Error(err)
			}
		})
		watching := s.watch("", "a/b/x")
		made.Wait()
		if watching {
			s.notified(s.id)
		}
		if err := os.RemoveAll(filepath.Join(s.dir, "a")); err != nil {
			t.Fatal(err)
		}
	}
}

// Calls that run at once leave one watch, that of the greatest id.
func TestStartsAtOnce(t *testing.T) {
	s := newScene(t)
	var all sync.WaitGroup
	for id := range uint64(32) {
		r := s.request(id+1, "", "x")
		all.Go(func() {
			if w := s.slot.Start(r); w != nil {
				go w.Run(s.send)
			}
		})
	}
	all.Wait()
	s.sh(">x")
	s.notified(32)
	s.silent()
}

// A watch looks with the rights of the thread that it is started on.
func TestRightsOfTheThread(t *testing.T) {
	testroot.Need(t)
	dir, err := os.MkdirTemp("", "watch")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, mode := range map[string]os.FileMode{"open": 0o755, "secret": 0o700} {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name), mode), os.Chmod(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	s := newScene(t)
	start := func(id uint64, name string) bool {
		return s.start(id, "", proto.FileURI(filepath.Join(dir, name)).String()) != nil
	}
	if !start(1, "secret/x") {
		t.Error("root may not")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if _, _, no := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); no != 0 {
			t.Error(no)
		}
		if start(2, "secret/x") || !start(3, "open/x") {
			t.Error("nobody sees what is secret, or not what is open")
		}
	}()
	<-done
}
