package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

func stateIs(state string) func(*control.Environment) bool {
	return func(e *control.Environment) bool { return e.State == state }
}

func TestEnvironmentsComeAndGoWhileTheDaemonRuns(t *testing.T) {
	o := newOutbound(t)
	r := newRoot(t, "")
	s := r.serve()
	_, file := r.secret("key")
	if got := r.env("", "ls"); strings.Count(got, "\n") != 1 {
		t.Errorf("without environments ls prints\n%s", got)
	}
	r.env("", "add", "one", "--remote", o.peer.URL, "--key-file", file)
	r.env("", "add", "two", "--remote", o.peer.URL, "--key-file", file, "--environment-id", "other-id")
	o.socket("one", 1)
	o.socket("other-id", 1)
	if _, stderr, code := cli(t, "", "--config", r.config, "env", "add", "one", "--remote", o.peer.URL, "--key-file", file); code == 0 || !strings.Contains(stderr, "one") {
		t.Errorf("a second environment of a name: exit %d, %s", code, stderr)
	}
	e := r.becomes("one", "connected", stateIs("connected"))
	if e.Running || e.Transport != "noise" || e.Reconnects != 0 || e.ConnectedSince == nil || e.LastError != "" ||
		e.Remote != o.peer.URL || e.EnvironmentID != "one" || e.Origin != "added" || !e.Kept {
		t.Errorf("before the first stream ls tells %+v", e)
	}

	h, other := o.connect("one", ""), o.connect("other-id", "")
	if got := h.sh("hostname; echo kept > /workspace/f"); got != "one" {
		t.Errorf("the host's name in environment one is %q", got)
	}
	h.start("/bin/sleep", "1000")
	h.start("/bin/sleep", "1000")
	e = r.listed("one")
	if !e.Running || e.Sessions == nil || *e.Sessions != 1 || e.Processes == nil || *e.Processes != 2 || e.Streams != 1 {
		t.Errorf("with a session and two processes ls tells %+v", e)
	}
	o.peer.Cut("one", remotetest.CutEnd)
	wait(t, h.c.Done(), "the end of the connection")
	o.socket("one", 2)
	h = o.connect("one", h.session)
	e = r.listed("one")
	if e.Reconnects != 1 || e.LastError == "" || e.LastErrorAt == nil || *e.Sessions != 1 || *e.Processes != 2 || e.Streams != 1 {
		t.Errorf("after a cut ls tells %+v", e)
	}
	var line string
	for l := range strings.Lines(r.env("", "ls")) {
		if strings.HasPrefix(l, "one ") {
			line = strings.Join(strings.Fields(l)[:7], " ")
		}
	}
	if f := strings.Fields(line); len(f) != 7 || f[1] != "connected" || f[2] != "noise" || f[4] != "1" || f[5] != "1" || f[6] != "2" {
		t.Errorf("the line of ls is %q", line)
	}

	r.env("", "rm", "one")
	wait(t, h.c.Done(), "the end of a connection to what was removed")
	if r.listed("one") != nil {
		t.Error("ls tells of an environment that was removed")
	}
	if left, _ := filepath.Glob("/sys/fs/cgroup/*/" + r.cgroup() + "/e-one-*"); left != nil {
		t.Errorf("of the container there is still %v", left)
	}
	if left, _ := filepath.Glob("/sys/fs/cgroup/" + r.cgroup() + "/e-one-*"); left != nil {
		t.Errorf("of the container there is still %v", left)
	}
	if got := other.sh("echo still here"); got != "still here" {
		t.Errorf("the other environment says %q", got)
	}
	if _, stderr, code := cli(t, "", "--config", r.config, "env", "rm", "one"); code == 0 || !strings.Contains(stderr, "one") {
		t.Errorf("a second rm: exit %d, %s", code, stderr)
	}

	// Its workspace is there for one of the same name, and what was added is served
	// by the next daemon too.
	r.env("", "add", "one", "--remote", o.peer.URL, "--key-file", file)
	if code := s.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("the daemon ends with %d", code)
	}
	r.serve()
	if got := o.connect("one", "").sh("cat /workspace/f"); got != "kept" {
		t.Errorf("the workspace has %q", got)
	}
	r.becomes("two", "connected", stateIs("connected"))
}

// What an environment is refused with is nobody else's trouble, and is over when
// its credential changes.
func TestAnEnvironmentThatIsRefusedDisturbsNobody(t *testing.T) {
	o := newOutbound(t)
	r := newRoot(t, "")
	_, good := r.secret("good")
	_, bad := r.secret("bad")
	_, gone := r.secret("gone")
	o.peer.Set("bad", func(f *remotetest.Faults) {
		f.Register = remotetest.Plan{Status: 401, Code: "unauthorized", Message: "this key was withdrawn"}
	})
	o.peer.Set("gone", func(f *remotetest.Faults) {
		f.Register = remotetest.Plan{Status: 404, Code: "not_found", Message: "no such environment"}
	})
	text, err := os.ReadFile(r.config)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"good": good, "bad": bad, "gone": gone} {
		text = fmt.Appendf(text, "[environment.%s]\nremote = %q\nkey_file = %q\n", name, o.peer.URL, file)
	}
	if err := os.WriteFile(r.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r.serve()
	h := o.connect("good", "")
	_, steady := h.start("/bin/sh", "-c", "i=0; while test $i -lt 1000000; do echo $i; i=$((i+1)); sleep 0.05; done")
	check := func(when string) {
		t.Helper()
		if got := h.sh("echo fine"); got != "fine" {
			t.Errorf("%s the good one says %q", when, got)
		}
		select {
		case <-steady.exited:
			t.Errorf("%s the good one's process is gone", when)
		default:
		}
		if n := o.peer.Sockets("good"); n != 1 {
			t.Errorf("%s the good one has had %d sockets", when, n)
		}
	}
	e := r.becomes("bad", "failed", stateIs("failed"))
	if want := "environment registry authentication error: environment registry authentication failed (401 Unauthorized): this key was withdrawn (with the key from " + bad + ")"; e.LastError != want {
		t.Errorf("the last error is %q", e.LastError)
	}
	e = r.becomes("gone", "failed", stateIs("failed"))
	if want := "environment registry request failed (404 Not Found, not_found): no such environment (asked at " + strings.TrimPrefix(o.peer.URL, "http://") + ")"; e.LastError != want {
		t.Errorf("the last error is %q", e.LastError)
	}
	check("beside two that fail")

	// That the registry would take it does not help by itself, for minutes.
	o.peer.Set("bad", func(f *remotetest.Faults) { *f = remotetest.Faults{} })
	time.Sleep(4 * time.Second)
	if n := len(o.peer.Calls("bad", remotetest.Register)); n != 1 {
		t.Errorf("the bad one has tried %d times", n)
	}
	// Another key does. The file is looked at every 3 s.
	token, _ := r.secret("bad")
	start := time.Now()
	o.socket("bad", 1)
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("another key is used after %s", took)
	}
	calls := o.peer.Calls("bad", remotetest.Register)
	if got := calls[len(calls)-1].Header.Get("Authorization"); got != "Bearer "+token {
		t.Errorf("it presents %q", got)
	}
	if got := o.connect("bad", "").sh("hostname"); got != "bad" {
		t.Errorf("the host's name is %q", got)
	}
	check("when the bad one is back")
	if e := r.listed("gone"); e.State != "failed" || len(o.peer.Calls("gone", remotetest.Register)) != 1 {
		t.Errorf("the other one is %+v", e)
	}
}
