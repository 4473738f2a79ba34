package agent

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// overSocket is a harness whose connection is a socket such as the gateway's.
func overSocket(t *testing.T, s *Server, hello proto.Hello) *harness {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[1]), "")
	ours, err := net.FileConn(f)
	_ = f.Close()
	if err != nil {
		t.Fatal(err)
	}
	theirs := &socket{fd: fds[0]}
	h := connectOver(t, s, hello, proto.NewStreamConn(ours, proto.MaxAnswer), &socketConn{proto.NewStreamConn(theirs, proto.MaxRequest), theirs})
	h.initialize("")
	return h
}

// pileUp makes the server wait for something, with more behind it than it reads:
// first and last start commands that leave the files first and last in dir.
func pileUp(t *testing.T, h *harness, hold string, concurrency int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for range concurrency {
		h.send("%s", hold)
	}
	h.send(`{"id":"first","method":"process/start","params":%s}`, h.startParams("first", "touch "+filepath.Join(dir, "first"), ""))
	for i := range 400 {
		h.send(`{"id":%d,"method":"fs/getMetadata","params":{"path":"file:///"}}`, i)
	}
	h.send(`{"id":"last","method":"process/start","params":%s}`, h.startParams("last", "touch "+filepath.Join(dir, "last"), ""))
	return dir
}

// However much a peer has asked for, its end is noticed at once, and nothing of
// what waits is begun.
func TestTheEndIsNoticedBehindAFullBacklog(t *testing.T) {
	for _, concurrency := range []int{1, 3} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			hold, release := holdOn(t)
			defer release()
			s := newServer(t, Options{})
			h := overSocket(t, s, proto.Hello{Concurrency: concurrency})
			dir := pileUp(t, h, hold, concurrency)
			h.leave()
			if got := connect(t, s, proto.Hello{}).initialize(h.id); got != h.id {
				t.Errorf("the session is %s", got)
			}
			time.Sleep(50 * time.Millisecond) // for what should not happen
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("begun after the end: %v, %v", left, err)
			}
		})
	}
}

// Reading goes on when there is room, and nothing is lost.
func TestReadingGoesOnWhenThereIsRoom(t *testing.T) {
	for _, concurrency := range []int{1, 3} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			hold, release := holdOn(t)
			h := overSocket(t, newServer(t, Options{}), proto.Hello{Concurrency: concurrency})
			dir := pileUp(t, h, hold, concurrency)
			time.Sleep(20 * time.Millisecond) // so that it waits, mostly
			release()
			for range concurrency + 402 {
				if got := h.answer(); !strings.Contains(got, `"result":`) {
					t.Fatal(got)
				}
			}
			for _, id := range []string{"first", "last"} {
				for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
					if _, err := os.Stat(filepath.Join(dir, id)); err == nil {
						break
					} else if time.Now().After(end) {
						t.Fatal(err)
					}
				}
			}
			h.alive()
		})
	}
}

// Large messages fill the backlog sooner.
func TestTheBacklogIsBoundedInBytes(t *testing.T) {
	for _, concurrency := range []int{1, 3} {
		inBubble(t, Options{}, func(t *testing.T, s *Server) {
			hold, release := holdOn(t)
			h := ready(t, s, proto.Hello{Concurrency: concurrency})
			for range concurrency {
				h.send("%s", hold)
			}
			const n = 30
			sent := make(chan int, n)
			go func() {
				for i := range n {
					h.send(`{"id":%d,"method":"fs/getMetadata","params":{"path":"file:///","x":"%s"}}`, i, strings.Repeat("x", 1<<20))
					sent <- i
				}
			}()
			synctest.Wait()
			if got := len(sent) - 2; got > maxBacklogBytes>>20 {
				t.Errorf("%d MiB were read", got)
			}
			release()
			for range concurrency + n {
				h.answer()
			}
		})
	}
}

// What comes right behind a message that ends the connection is not begun.
func TestNothingIsBegunBehindTheEnd(t *testing.T) {
	s := newServer(t, Options{})
	h := overSocket(t, s, proto.Hello{})
	marker := filepath.Join(t.TempDir(), "marker")
	frames := append(proto.FrameOf([]byte(`{"method":"nonsense"}`)), proto.FrameOf(fmt.Appendf(nil, `{"id":1,"method":"process/start","params":%s}`, h.startParams("p", "touch "+marker, "")))...)
	if err := h.conn.WriteFrames(frames); err != nil {
		t.Fatal(err)
	}
	h.gone()
	eventually(t, "detached session", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.sessions[h.id].conn == nil
	})
	connect(t, s, proto.Hello{}).initialize(h.id)
	if p, starting := h.session().find("p"); p != nil || starting {
		t.Error("the command was started")
	}
}
