package leakcheck

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestSnapshotFindsWhatIsLeft(t *testing.T) {
	dir := t.TempDir()
	scope := Scope{Paths: []string{dir}, Depth: 2, Processes: []string{dir}}
	before, err := scope.Snapshot()
	if err != nil {
		t.Fatal(err)
	}

	if err := os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command("sleep", "1000")
	cmd.Args[0] = filepath.Join(dir, "sleeper")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()

	after, err := scope.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	diff := Diff(before, after)
	for _, want := range []string{
		"+ file " + dir + "/a\n", "+ file " + dir + "/a/b\n", "+ file " + dir + "/s\n",
		"+ socket " + dir + "/s\n", "+ process ", dir + "/sleeper 1000",
	} {
		if !strings.Contains(diff, want) {
			t.Errorf("the difference lacks %q:\n%s", want, diff)
		}
	}
	if strings.Contains(diff, "/a/b/c") {
		t.Errorf("the difference goes too deep:\n%s", diff)
	}
	if back := Diff(after, before); !strings.Contains(back, "- socket "+dir+"/s\n") {
		t.Errorf("the reverse difference lacks the socket:\n%s", back)
	}
	if same := Diff(after, after); same != "" {
		t.Errorf("a state differs from itself:\n%s", same)
	}
}

func TestSnapshotFindsZombies(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	for range 1000 {
		state, err := (Scope{}).Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if state.Count("process") == 1 && strings.Contains(state.Kinds["process"][0], "zombie true") {
			return
		}
	}
	t.Fatal("the zombie was not found")
}

func TestSnapshotFindsMountsAndCgroups(t *testing.T) {
	state, err := (Scope{Paths: []string{"/proc"}}).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if state.Count("mount") == 0 {
		t.Error("/proc is not found to be mounted")
	}
	if os.Geteuid() != 0 {
		t.Skip("making a cgroup needs root")
	}
	entries, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if err != nil || len(entries) == 0 {
		entries = []string{"/sys/fs/cgroup/cgroup.procs"}
	}
	made := filepath.Join(filepath.Dir(entries[0]), "leakcheck-test")
	if err := os.Mkdir(made, 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(made)
	state, err = (Scope{Cgroup: "leakcheck-"}).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if state.Count("cgroup") != 1 {
		t.Errorf("found %q, not the cgroup", state.Kinds["cgroup"])
	}
}
