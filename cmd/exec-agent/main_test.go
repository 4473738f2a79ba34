package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/testroot"
)

func TestTheEnvironmentOfCommands(t *testing.T) {
	root, err := agent.LookupUser("", "0")
	if err != nil {
		t.Skip(err)
	}
	own := os.Environ()
	t.Cleanup(func() { setEnvironment(t, own) })
	dev := agent.User{Name: "dev", UID: 1000, Home: "/home/dev", Shell: "/bin/zsh"}
	for _, test := range []struct {
		name string
		env  []string
		user agent.User
		want string
	}{
		{"a user", []string{"PATH=/bin"}, dev, "HOME=/home/dev LOGNAME=dev PATH=/bin SHELL=/bin/zsh USER=dev"},
		{"root's HOME is not the user's", []string{"HOME=" + root.Home}, dev, "HOME=/home/dev LOGNAME=dev SHELL=/bin/zsh USER=dev"},
		{"the image's HOME is", []string{"HOME=/opt", "USER=x"}, dev, "HOME=/opt LOGNAME=dev SHELL=/bin/zsh USER=x"},
		{"root", []string{"HOME=" + root.Home}, root, "HOME=" + root.Home + " LOGNAME=root SHELL=" + root.Shell + " USER=root"},
		{"nobody known", nil, agent.User{UID: 5, Home: "/"}, "HOME=/"},
	} {
		setEnvironment(t, test.env)
		got := environment(test.user)
		slices.Sort(got)
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, s, test.want)
		}
	}
}

func setEnvironment(t *testing.T, env []string) {
	t.Helper()
	os.Clearenv()
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
	}
}

func TestIdentity(t *testing.T) {
	own := identity(agent.User{UID: os.Getuid(), GID: os.Getgid()})
	if root := os.Getuid() == 0; root && (own == nil || !own.Guard) || !root && own != nil {
		t.Errorf("of the agent's own user it is %+v", own)
	}
	for _, u := range []agent.User{{UID: os.Getuid() + 1, GID: os.Getgid()}, {UID: os.Getuid(), GID: os.Getgid() + 1}, {UID: os.Getuid(), GID: os.Getgid(), Groups: []int{5}}} {
		if id := identity(u); id == nil || id.UID != u.UID || id.GID != u.GID || len(id.Groups) != len(u.Groups) {
			t.Errorf("of %+v it is %+v", u, id)
		}
	}
}

func TestAWorkspaceIsHandedOverWhileItIsNew(t *testing.T) {
	testroot.Need(t)
	u := agent.User{UID: 1000, GID: 1001}
	owner := func(path string) uint32 {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return st.Sys().(*syscall.Stat_t).Uid
	}
	fresh, used := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cwd := filepath.Join(fresh, "a")
	for _, workspace := range []string{fresh, used} {
		if err := handOver(u, workspace, cwd); err != nil {
			t.Fatal(err)
		}
	}
	if owner(fresh) != 1000 || owner(used) != 0 || owner(filepath.Join(used, "file")) != 0 || owner(cwd) != 1000 {
		t.Errorf("the owners are %d, %d, %d and %d", owner(fresh), owner(used), owner(filepath.Join(used, "file")), owner(cwd))
	}
	if err := handOver(u, "/no/such", "/"); err == nil {
		t.Error("a workspace that is not there is no error")
	}
}

func TestUsageErrors(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "exec-agent: usage: exec-agent --socket PATH [flags]; see --help\n"},
		{[]string{"--socket", "/tmp/x", "more"}, "exec-agent: usage: exec-agent --socket PATH [flags]; see --help\n"},
		{[]string{"--socket", "/tmp/x", "--user", "no-such-user"}, "exec-agent: user \"no-such-user\" is not in the image's /etc/passwd\n"},
		{[]string{"--socket", "/no/such/socket"}, "exec-agent: listen on /no/such/socket: no such file or directory\n"},
	} {
		out, err := exec.Command(build(t), test.args...).CombinedOutput()
		if err == nil || string(out) != test.want {
			t.Errorf("%q: %v, %q; want %q", test.args, err, out, test.want)
		}
	}
}
