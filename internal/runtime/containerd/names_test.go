package containerd

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/exec-server/exec-server/internal/testroot"
)

func TestNames(t *testing.T) {
	valid := regexp.MustCompile(`^[A-Za-z0-9]+(?:[._-](?:[A-Za-z0-9]+))*$`) // containerd's rule
	for _, name := range []string{"a", "A..b--", "x_" + strings.Repeat("y", 62), "tasks"} {
		if err := checkName(name); err != nil {
			t.Error(err)
		}
		if id := newID(name); !valid.MatchString(id) || len(id) > 76 {
			t.Errorf("%s has the id %s", name, id)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "-a", "_a", "ä", "a b", strings.Repeat("y", 65), "a\n"} {
		if checkName(name) == nil {
			t.Errorf("%q is a name", name)
		}
	}
	for name, want := range map[string]string{
		"Web.App_1": "web-app-1", "a..": "a", strings.Repeat("y", 64): strings.Repeat("y", 63),
	} {
		if got := hostname(name); got != want {
			t.Errorf("the host's name of %s is %s", name, got)
		}
	}
	if got := instance("/run/exec-server/0123456789ab"); got != "0123456789ab" {
		t.Error(got)
	}
	if got := instance("/run/other"); !validInstance.MatchString(got) || got != instance("/run/other/") {
		t.Error(got)
	}
}

func TestOverlay(t *testing.T) {
	got := overlay([]string{"A=1", "B=2", "bad", "=x"}, []string{"B=", "C=x=y"})
	if want := []string{"A=1", "B=", "C=x=y"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestPickRange(t *testing.T) {
	taken := map[uint32]bool{}
	for i := range 4094 {
		ids, err := pickRange("/a", taken)
		if err != nil || !ids.valid() || taken[ids.base] {
			t.Fatalf("range %d begins with %d, %v", i, ids.base, err)
		}
		taken[ids.base] = true
	}
	if ids, err := pickRange("/a", taken); err == nil {
		t.Errorf("there is one more range, from %d", ids.base)
	}
	const free = idFirst + 5*idCount
	delete(taken, free)
	if ids, err := pickRange("/a", taken); err != nil || ids.base != free {
		t.Errorf("the free range begins with %d, %v", ids.base, err)
	}
	a, _ := pickRange("/a", nil)
	if b, _ := pickRange("/b", nil); a == b {
		t.Errorf("two roots begin with the same range %d", a.base)
	}
}

func TestUsedRangesFindsRunningContainers(t *testing.T) {
	testroot.Need(t)
	const base = idFirst + 77*idCount
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: base + 10, Size: 20}},
		GidMappings: []syscall.SysProcIDMap{{HostID: base + 10, Size: 20}},
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	if used := usedRanges(); !used[base] || used[base+idCount] && used[base-idCount] {
		t.Errorf("the ranges in use are %v", used)
	}
}

func TestRing(t *testing.T) {
	var r ring
	r.Write([]byte(strings.Repeat("x", 10000)))
	r.Write([]byte("\none\ntwo\x1b[31m\nthree\nfour\nfive\n"))
	if got, want := r.tail(), "one | two.[31m | three | four | five"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if len(r.buf) != ringSize {
		t.Errorf("it keeps %d bytes", len(r.buf))
	}
}
