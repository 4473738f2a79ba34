package process

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func helperFD(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs = os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}

// What a helper is given, whether its program has a name or is open only.
func TestHelpers(t *testing.T) {
	sh, err := os.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sh.Close() }()
	high, err := unix.FcntlInt(sh.Fd(), unix.F_DUPFD_CLOEXEC, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(high) }()
	for _, path := range []string{"/bin/sh", "/proc/self/fd/100"} {
		if path != "/bin/sh" && high != 100 {
			t.Skip("descriptor 100 is taken")
		}
		ours, theirs := helperFD(t)
		h, err := StartHelper(HelperSpec{
			Path: path, Argv: []string{"sh", "-c", `echo "$A $# $0 $1 $(pwd)" >&3; readlink /proc/$$/fd/0 >&3; cat /proc/self/oom_score_adj >&3; kill -STOP $$`, "name", "arg"},
			Env: []string{"A=b", "PATH=" + os.Getenv("PATH")}, Dirs: []string{"/nowhere", "/tmp"}, OOMScoreAdj: 300, Files: []int{int(theirs.Fd())},
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = theirs.Close()
		var got strings.Builder
		buf := make([]byte, 4096)
		for strings.Count(got.String(), "\n") < 3 {
			_ = ours.SetReadDeadline(time.Now().Add(20 * time.Second))
			n, err := ours.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got.Write(buf[:n])
		}
		if want := "b 1 name arg /tmp\n/dev/null\n300\n"; got.String() != want {
			t.Errorf("%s: %q, want %q", path, got.String(), want)
		}
		h.End() // though it is stopped
		if err := unix.Kill(h.pid, 0); err != unix.ESRCH {
			t.Errorf("it is there: %v", err)
		}
		if children.has(h.pid) {
			t.Error("it is remembered")
		}
	}
	if adj, err := os.ReadFile(oomScoreAdj); err != nil || strings.TrimSpace(string(adj)) == "300" {
		t.Errorf("the server keeps %q, %v", adj, err)
	}
	if h, err := StartHelper(HelperSpec{Path: "/nowhere/helper", Argv: []string{"x"}}); err == nil || !strings.Contains(err.Error(), "start helper: no such file") {
		t.Errorf("%v, %v", h, err)
	}
}

// The reaper leaves helpers to whoever waits for them, also one that ends at once.
func TestHelpersThatHaveEnded(t *testing.T) {
	for range 20 {
		h, err := StartHelper(HelperSpec{Path: "/bin/true", Argv: []string{"true"}})
		if err != nil {
			t.Fatal(err)
		}
		h.End()
	}
}
