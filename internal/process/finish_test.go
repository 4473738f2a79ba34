package process

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// aside starts a shell that nobody watches.
func aside(t *testing.T, script string, state *os.File) *Process {
	t.Helper()
	p, err := Start(Spec{ID: "p", Argv: []string{"/bin/sh", "-c", script}, Cwd: "/", Env: map[string]string{"PATH": "/bin:/usr/bin"}, State: state},
		Options{OutputBytes: 1 << 20, Notify: func([]byte) {}, Closed: func(*Process) {}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFinish(t *testing.T) {
	printed, code, ended := aside(t, "echo out; echo err >&2; exit 3", nil).Finish(nil)
	if string(printed[Stdout]) != "out\n" || string(printed[Stderr]) != "err\n" || code != 3 || !ended {
		t.Errorf("%q, %d, %v", printed, code, ended)
	}
	printed, _, ended = aside(t, "yes | head -c 3000000; echo end", nil).Finish(nil)
	if out := string(printed[Stdout]); !ended || len(out) > 1<<20 || !strings.HasSuffix(out, "y\nend\n") {
		t.Errorf("%d bytes are kept", len(out))
	}
}

// What a command leaves behind is not waited for.
func TestFinishKillsSurvivors(t *testing.T) {
	printed, code, ended := aside(t, "sleep 1000 & echo $!", nil).Finish(nil)
	if string(printed[Stdout]) == "" || code != 0 || !ended {
		t.Errorf("%q, %d, %v", printed, code, ended)
	}
}

func TestFinishIsCancelled(t *testing.T) {
	p := aside(t, "echo x; sleep 1000", nil)
	cancel := make(chan struct{})
	close(cancel)
	if _, _, ended := p.Finish(cancel); ended {
		t.Error("it has ended by itself")
	}
	deadline := time.Now().Add(20 * time.Second)
	for p.Running() {
		if time.Now().After(deadline) {
			t.Fatal("it runs on")
		}
		time.Sleep(time.Millisecond)
	}
}

// A command has the state under its number, and nothing else between.
func TestStateOfACommand(t *testing.T) {
	fd, err := unix.MemfdCreate("state", unix.MFD_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	f := os.NewFile(uintptr(fd), "state")
	defer func() { _ = f.Close() }()
	if _, err := io.WriteString(f, "echo sourced\nexec 9<&-\n"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is read anew each time
		printed, code, _ := aside(t, `. /proc/self/fd/9; ls /proc/$$/fd`, f).Finish(nil)
		if out := string(printed[Stdout]); out != "sourced\n0\n1\n2\n" || code != 0 {
			t.Errorf("%q, %q, %d", out, printed[Stderr], code)
		}
	}
	printed, _, _ := aside(t, `readlink /proc/$$/fd/9; ls /proc/$$/fd`, f).Finish(nil)
	if out := string(printed[Stdout]); !strings.HasPrefix(out, "/memfd:state") || !strings.HasSuffix(out, "\n0\n1\n2\n9\n") {
		t.Errorf("%q", out)
	}
}
