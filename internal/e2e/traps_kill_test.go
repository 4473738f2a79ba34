package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/exec-server/exec-server/internal/testroot"
)

// Terminate kills the whole tree, however deep, that has stayed in the
// command's process group: that is what the protocol says terminate is.
func TestTrap25TerminateKillsTheTree(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		mark := marker()
		id, c := h.script(nil, `sh -c "sh -c 'sleep `+mark+`' & sleep `+mark+` & echo up; wait" & wait`)
		wait(t, c.prints, "the tree")
		eventually(t, "its leaves", func() bool { return len(withMarker(t, mark)) >= 2 })
		if !h.terminate(id) {
			t.Error("it was not running")
		}
		wait(t, c.closed, "its end")
		if c.code != 137 {
			t.Errorf("exit %d", c.code)
		}
		eventually(t, "the end of the tree", func() bool { return len(withMarker(t, mark)) == 0 })
	})
}

// daemonize leaves the command's group twice over: by setsid, and as an orphan.
func daemonize(mark string) string {
	return "setsid sleep " + mark + " >/dev/null 2>&1 & (setsid sh -c 'sleep " + mark + " & exit' >/dev/null 2>&1 &) ; echo up; sleep 1000"
}

// What has left the group survives terminate, by the protocol. In a container
// it cannot survive the environment, whether that is ended or its server killed.
// With --runtime host there is nothing around it, as with the stock executor.
func TestTrap26DaemonsSurvive(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		mark := marker()
		defer func() { kill(withMarker(t, mark)) }()
		id, c := h.script(nil, daemonize(mark))
		wait(t, c.prints, "its output")
		eventually(t, "the daemons", func() bool { return len(withMarker(t, mark)) >= 2 })
		if !h.terminate(id) {
			t.Error("it was not running")
		}
		wait(t, c.closed, "its end")
		if left := len(withMarker(t, mark)); left < 2 {
			t.Errorf("%d processes outside the group are left", left)
		}
	})
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run("the environment ends after "+end.String(), func(t *testing.T) {
			r := newRoot(t, "") // which sees to it that nothing is left
			s := r.serve()
			mark := marker()
			h := s.connect("/", "")
			_, c := h.script(nil, daemonize(mark))
			wait(t, c.prints, "its output")
			eventually(t, "the daemons", func() bool { return len(withMarker(t, mark)) >= 2 })
			s.stop(end)
			if end == syscall.SIGKILL {
				r.serve().stop(syscall.SIGTERM)
			}
			eventually(t, "their end", func() bool { return len(withMarker(t, mark)) == 0 })
		})
	}
	t.Run("the session of its own container ends", func(t *testing.T) {
		r := newRoot(t, "[session]\ndetach = \"1s\"\n[listen]\nscope = \"session\"\n")
		mark := marker()
		h := r.serve().connect("/", "")
		_, c := h.script(nil, daemonize(mark))
		wait(t, c.prints, "its output")
		eventually(t, "the daemons", func() bool { return len(withMarker(t, mark)) >= 2 })
		_ = h.c.Close()
		eventually(t, "their end", func() bool { return len(withMarker(t, mark)) == 0 })
	})
}

// Terminate is SIGKILL: nothing can ignore it, on a terminal neither.
func TestTrap27SignalsIgnored(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		for _, more := range []map[string]any{nil, onTerminal} {
			mark := marker()
			id, c := h.script(more, `trap '' TERM HUP INT QUIT; sh -c "sleep `+mark+`" & sleep `+mark+` & echo up; wait; wait`)
			wait(t, c.prints, "the tree")
			eventually(t, "its leaves", func() bool { return len(withMarker(t, mark)) >= 2 })
			if !h.terminate(id) {
				t.Error("it was not running")
			}
			wait(t, c.closed, "its end")
			eventually(t, "the end of the tree", func() bool { return len(withMarker(t, mark)) == 0 })
		}
	})
}

// zombies counts the children of a process that have ended and were not reaped.
func zombies(pid int) (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		data, _ := os.ReadFile(file)
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])) // from the state on
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == fmt.Sprint(pid) {
			n++
		}
	}
	return n
}

// parentOf is who started a process, or adopted it.
func parentOf(t testing.TB, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	parent, err := strconv.Atoi(fields[1])
	if err != nil || parent <= 1 {
		t.Fatalf("the parent of %d is %d, %v", pid, parent, err)
	}
	return parent
}

// Orphans are reaped by the agent, which is PID 1 of its container, and by the
// server where it is PID 1 itself.
func TestTrap29Zombies(t *testing.T) {
	testroot.Need(t)
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); (true &); done", scale(t, 500, 5000))
	t.Run("agent", func(t *testing.T) {
		p := inContainer(t, "")
		p.connect("/", "").sh(script)
		eventually(t, "the zombies' end", func() bool { return zombies(p.pid()) == 0 })
	})
	t.Run("server", func(t *testing.T) {
		program := bin
		defer func() { bin = program }()
		bin = "/usr/bin/unshare"
		s := serve(t, "--pid", "--fork", "--kill-child", "--mount-proc", program, "--runtime", "host", "--listen", "ws://127.0.0.1:0")
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", s.cmd.Process.Pid))
		server, aerr := strconv.Atoi(strings.TrimSpace(string(children)))
		if err != nil || aerr != nil {
			t.Fatal(err, aerr)
		}
		defer syscall.Kill(server, syscall.SIGTERM) // unshare passes nothing on
		h := s.connect("/", "")
		if out, _ := h.finish(nil, "echo $PPID"); out != "1\n" {
			t.Fatalf("the server is process %q", out)
		}
		h.sh(script)
		left := ""
		eventually(t, "the zombies' end", func() bool {
			left = h.sh("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ' Z 1 '")
			return left == "0"
		})
	})
}

// When a harness goes without a word, its commands live as long as its session
// may be resumed, and then go as a tree.
func TestTrap30HarnessGoesWithoutAWord(t *testing.T) {
	briefly(t, func(t *testing.T, p *place) {
		way, cable := throughFragile(t, p.server)
		h := way.connect("/", "")
		mark := marker()
		_, c := h.script(withStdin, "sleep "+mark+" & echo up; sleep "+mark)
		wait(t, c.prints, "its output")
		eventually(t, "the tree", func() bool { return len(withMarker(t, mark)) == 2 })
		cable.cut()
		again := p.resume(h.session) // it lives
		if left := len(withMarker(t, mark)); left != 2 {
			t.Errorf("%d processes are left at the resume", left)
		}
		_ = again.c.Close()
		eventually(t, "the end of the tree", func() bool { return len(withMarker(t, mark)) == 0 })
	})
}

// By the protocol terminate gives no grace: a handler of SIGTERM does not run.
// A grace when an environment is stopped is for later.
func TestTrap31TerminateGivesNoGrace(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		id, c := h.script(nil, "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
		wait(t, c.prints, "its output")
		h.terminate(id)
		wait(t, c.closed, "its end")
		if c.code != 137 || c.out.String() != "up\n" {
			t.Errorf("exit %d, output %q", c.code, c.out.String())
		}
	})
}

// An interrupt reaches commands with and without a terminal: it is SIGINT for
// the command's group. ^C typed on a terminal reaches the group in front there.
func TestTrap32Interrupt(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		h := p.connect("/", "")
		for _, test := range []struct {
			more map[string]any
			code int
		}{{nil, 130}, {onTerminal, 1}} {
			id, c := h.script(test.more, "echo up; exec sleep 1000")
			wait(t, c.prints, "its output")
			h.must("process/signal", map[string]any{"processId": id, "signal": "interrupt"})
			wait(t, c.closed, "its end")
			if c.code != test.code {
				t.Errorf("%v: exit %d, want %d", test.more, c.code, test.code)
			}
			if _, err := h.call("process/signal", map[string]any{"processId": id, "signal": "interrupt"}); err != nil {
				t.Errorf("after its end: %v", err)
			}
		}
		// With job control the shell is not in the group that is in front.
		id, c := h.script(onTerminal, "set -m; trap 'exit 9' INT; sh -c 'trap \"exit 3\" INT; echo up; while :; do sleep 0.05; done'; echo $?; exit 5")
		wait(t, c.prints, "its output")
		h.write(id, "1", "\x03")
		wait(t, c.closed, "its end")
		if got := c.out.String(); c.code != 5 || !strings.HasSuffix(got, "3\r\n") {
			t.Errorf("exit %d, output %q", c.code, got)
		}
	})
}
