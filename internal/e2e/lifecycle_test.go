package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestKilledDaemonIsPickedUpWhereItWas(t *testing.T) {
	r := newRoot(t, "")
	s := r.serve()
	h := s.connect("/", "")
	id, p := h.start("/bin/sh", "-c", "echo one; read x; echo two $x; exit 7")
	wait(t, p.prints, "its first output")
	s.stop(syscall.SIGKILL)

	// A passing command takes the root for a moment, and nothing else.
	if out, stderr, code := cli(t, "", "--config", r.config, "run", "--", "echo", "passing"); out != "passing\n" || code != 0 {
		t.Fatalf("run beside it: %q, %q, exit %d", out, stderr, code)
	}

	again := r.serve()
	h2 := again.connect("/", h.session)
	if h2.session != h.session {
		t.Fatalf("resumed session %s as %s", h.session, h2.session)
	}
	read, err := h2.call("process/read", map[string]any{"processId": id})
	if err != nil || read.Get("chunks").Len() != 1 {
		t.Fatalf("reading what was printed before: %v, %d chunks", err, read.Get("chunks").Len())
	}
	p2 := h2.proc(id)
	if _, err := h2.call("process/write", map[string]any{"processId": id, "writeId": "1", "chunk": "eQo="}); err != nil {
		t.Fatal(err)
	}
	wait(t, p2.closed, "the process that survived the daemon")
	if p2.code != 7 || p2.out.String() != "two y\n" {
		t.Errorf("after the restart it printed %q and exited with %d", p2.out.String(), p2.code)
	}
	if code := again.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM ends the server with %d", code)
	}
}

func TestKillingTheContainersInitMakesANewOne(t *testing.T) {
	r := newRoot(t, "")
	s := r.serve()
	h := s.connect("/", "")
	h.sh("echo kept > /workspace/f")
	// The agent is a process like others to the host.
	pid := strings.Fields(readCgroup(t, r, "cgroup.procs", "cgroup.procs"))[0]
	if _, stderr, code := shell("kill -9 " + pid); code != 0 {
		t.Fatal(stderr)
	}
	wait(t, h.c.Done(), "the connection to the dead environment")
	if got := s.connect("/", "").sh("cat /workspace/f"); got != "kept" {
		t.Errorf("the new container sees %q in its workspace", got)
	}
}

func TestSessionScope(t *testing.T) {
	r := newRoot(t, "[session]\ndetach = \"2s\"\n[listen]\nscope = \"session\"\n")
	s := r.serve()
	a, b := s.connect("/", ""), s.connect("/", "")
	a.sh("echo a > /tmp/f")
	if got := b.sh("ls /tmp"); got != "" {
		t.Errorf("the second session sees the first one's files: %q", got)
	}
	_ = a.c.Close()
	var again *harness
	for range 100 { // the end of the connection takes a moment to be noticed
		var err error
		if again, err = s.tryConnect("/", a.session); err == nil {
			break
		} else if !strings.Contains(err.Error(), "already attached") {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := again.sh("cat /tmp/f"); got != "a" {
		t.Errorf("the resumed session sees %q", got)
	}
	if _, err := s.tryConnect("/", "0b7e6a52-0000-4000-8000-000000000000"); err == nil || !strings.Contains(err.Error(), "unknown session id") {
		t.Errorf("resuming a session that never was: %v", err)
	}
	_ = b.c.Close()
	for !strings.Contains(s.logs.String(), `"environment":"`+b.session+`","time"`) { // until it has ended
		time.Sleep(50 * time.Millisecond)
	}
	if _, err := s.tryConnect("/", b.session); err == nil || !strings.Contains(err.Error(), "unknown session id") {
		t.Errorf("resuming a session that has expired: %v", err)
	}
	for range 100 { // its workspace goes too
		if left, _ := filepath.Glob(filepath.Join(r.dir, "root/environments", b.session+"*")); len(left) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the ended session has left its workspace")
}

func TestManyEnvironmentsStartAtOnce(t *testing.T) {
	s := newRoot(t, "[limits]\nenvironments = 4\n").serve()
	names := []string{"a", "b", "c", "d"}
	done := make(chan string, len(names))
	for _, name := range names {
		go func() {
			h, err := s.tryConnect("/environments/"+name, "")
			if err != nil {
				done <- err.Error()
				return
			}
			_ = h.c.Close()
			done <- ""
		}()
	}
	for range names {
		if msg := <-done; msg != "" {
			t.Error(msg)
		}
	}
	if _, err := s.tryConnect("/environments/e", ""); err == nil || !strings.Contains(err.Error(), "limits.environments") {
		t.Errorf("one more than the limit: %v", err)
	}
}
