package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

// Commands and file work are the user's, the server stays root.
func TestAServerWithAnIdentity(t *testing.T) {
	testroot.Need(t)
	s := newServer(t, Options{Identity: &process.Identity{UID: 1000, GID: 1000, Groups: []int{50}}})
	shared, err := os.MkdirTemp("", "identity")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(shared) }()
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, concurrency := range []int{1, 4} {
		h := ready(t, s, proto.Hello{Concurrency: concurrency})
		h.start("p", "id -u; id -G", "")
		if out, _ := h.untilClosed("p"); out != "1000\n1000 50\n" {
			t.Errorf("a command runs as %q", out)
		}
		h.call("fs/readFile", `{"path":"file:///etc/shadow"}`, "-32600 Permission denied (os error 13)")
		path := filepath.Join(shared, "file")
		h.call("fs/writeFile", `{"path":"file://`+path+`","dataBase64":""}`, "ok {}")
		if out := h.result("process/start", h.startParams("q", "stat -c %u "+path, "")); !strings.HasPrefix(out, "ok ") {
			t.Error(out)
		}
		if out, _ := h.untilClosed("q"); out != "1000\n" {
			t.Errorf("a file belongs to %q", out)
		}
		h.call("fs/remove", `{"path":"file://`+path+`"}`, "ok {}")
	}
	// A session that is resumed later, and ended by a timer, is killed by root.
	h := ready(t, s, proto.Hello{})
	h.start("p", "sleep 1000", "")
	h.call("process/terminate", `{"processId":"p"}`, `ok {"running":true}`)
	if _, code := h.untilClosed("p"); code != 137 {
		t.Errorf("exit code %d", code)
	}
}

// A command that has become another user can be killed all the same.
func TestACommandOfRootsCanBeTerminated(t *testing.T) {
	testroot.Need(t)
	dir, err := os.MkdirTemp("", "setuid")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sleep, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(dir, "sleep")
	if err := os.WriteFile(path, sleep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h := ready(t, newServer(t, Options{Identity: &process.Identity{UID: 1000, GID: 1000}}), proto.Hello{})
	for _, end := range []string{`process/terminate`, `process/signal`} {
		h.call("process/start", `{"processId":"`+end+`","argv":["`+path+`","1000"],"cwd":"file:///","env":{},"tty":false}`, `ok {"processId":"`+end+`","sandboxType":"none"}`)
		if got := h.result(end, `{"processId":"`+end+`","signal":"interrupt"}`); !strings.HasPrefix(got, "ok ") {
			t.Error(got)
		}
		if _, code := h.untilClosed(end); code != 137 && code != 130 {
			t.Errorf("exit code %d", code)
		}
	}
}
