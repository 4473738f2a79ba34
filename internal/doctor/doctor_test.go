package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exec-server/exec-server/internal/testroot"
)

// TestMain is also the child that runs the doctor as another user.
func TestMain(m *testing.M) {
	if dir := os.Getenv("DOCTOR_TEST_ROOT"); dir != "" {
		status, err := Print(os.Stdout, Run(context.Background(), Options{Root: dir}))
		if err != nil {
			panic(err)
		}
		fmt.Println(Preflight(dir, ""))
		os.Exit(status)
	}
	os.Exit(m.Run())
}

func find(t *testing.T, checks []Check, name string) Check {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no check %q", name)
	return Check{}
}

// want compares a check's status and the beginning of its detail.
func want(t *testing.T, c Check, status Status, detail string) {
	t.Helper()
	if c.Status != status || !strings.HasPrefix(c.Detail, detail) {
		t.Errorf("%+v, want %s %q", c, status, detail)
	}
	if strings.Contains(c.Detail+c.Fix, "\n") {
		t.Errorf("%+v has more than one line", c)
	}
}

// TestRunAsRoot makes all checks for real, and wants nothing of them left.
func TestRunAsRoot(t *testing.T) {
	testroot.Need(t)
	dir := t.TempDir()
	before := surroundings(t, dir)
	o := Options{Root: filepath.Join(dir, "not/there"), State: "/run/x", Image: "a:1", ImageFix: "make it",
		HasImage: func(_ context.Context, name string) (bool, error) { return name == "a:1", nil }}
	checks := Run(t.Context(), o)
	var out bytes.Buffer
	if _, err := Print(&out, checks); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", &out)
	if after := surroundings(t, dir); after != before {
		t.Errorf("left something:\n%s\nbefore:\n%s", after, before)
	}
	for _, name := range []string{"kernel", "root", "cgroups", "user namespaces", "overlayfs", "seccomp", "runc", "disk space", "inodes", "clock", "socket paths", "image"} {
		if c := find(t, checks, name); c.Status == Fail {
			t.Errorf("%+v", c)
		}
	}
	if err := Preflight(dir, ""); err != nil {
		t.Error(err)
	}
}

// surroundings is what a check could leave something in.
func surroundings(t *testing.T, dir string) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, ".*"))
	group := fmt.Sprintf("exec-server-doctor-%d", os.Getpid())
	groups, _ := filepath.Glob("/sys/fs/cgroup/" + group)
	groups1, _ := filepath.Glob("/sys/fs/cgroup/*/" + group)
	children, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	return fmt.Sprintf("%d mounts, %v %v %v %s", bytes.Count(mounts, []byte(dir)), files, groups, groups1, children)
}

func TestRunAsNobody(t *testing.T) {
	testroot.Need(t)
	dir, err := os.MkdirTemp("", "doctor")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	copied, err := os.OpenFile(filepath.Join(dir, "doctor"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(copied, self)
	if err = errors.Join(err, copied.Close(), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied.Name())
	cmd.Env = append(os.Environ(), "DOCTOR_TEST_ROOT="+dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v:\n%s", err, out)
	}
	for _, line := range []string{"running as user 65534; containers need root", "\nroot: running as user 65534; containers need root; run it as root\n", "seccomp"} {
		if !bytes.Contains(out, []byte(line)) {
			t.Errorf("%q is not in:\n%s", line, out)
		}
	}
	if bytes.Contains(out, []byte("panic")) {
		t.Errorf("%s", out)
	}
}

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	status, err := Print(&out, []Check{ok("a", "fine"), {"bb", Warn, "so so", "mend it"}})
	if want := "ok    a   fine\nwarn  bb  so so\n          -> mend it\n"; err != nil || status != 0 || out.String() != want {
		t.Errorf("%d, %v, %q", status, err, out.String())
	}
	if status, _ = Print(io.Discard, []Check{ok("a", "fine"), {"b", Fail, "bad", ""}}); status != 1 {
		t.Error(status)
	}
}

func TestImage(t *testing.T) {
	o := Options{Image: "a:1", ImageFix: "make it"}
	want(t, o.image(t.Context()), Warn, "the store cannot be looked at, so a:1")
	o.HasImage = func(context.Context, string) (bool, error) { return false, nil }
	if c := o.image(t.Context()); c.Status != Warn || c.Fix != "make it" {
		t.Error(c)
	}
	o.HasImage = func(context.Context, string) (bool, error) { return false, errors.New("broken") }
	want(t, o.image(t.Context()), Fail, "broken")
}
