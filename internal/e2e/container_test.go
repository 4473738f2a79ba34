package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandsRunInAContainerOfTheirOwn(t *testing.T) {
	r := newRoot(t, "")
	h := r.serve().connect("/", "")
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, script, want string }{
		{"host name", "hostname", "default"},
		{"init is the agent", "cat /proc/1/cmdline | head -c 22", "/run/exec-server/agent"},
		{"init cannot be looked into", "cat /proc/1/environ 2>&1 >/dev/null", "cat: can't open '/proc/1/environ': Permission denied"},
		{"root inside is nobody outside", "cat /proc/self/uid_map | while read in out n; do test $out -gt 1000000 && echo $in $n; done", "0 65536"},
		{"only loopback", "ls /sys/class/net", "lo"},
		{"loopback is up", "ip -o addr show lo | head -n 1 | head -c 30", "1: lo    inet 127.0.0.1/8 scop"},
		{"no new network administration", "cat /proc/self/status | while read k v; do test $k = CapEff: && echo $v; done", "00000000a80425fb"},
		{"seccomp is on", "cat /proc/self/status | while read k v; do test $k = Seccomp: && echo $v; done", "2"},
		{"mounting is refused", "mount -t tmpfs none /tmp 2>&1", "mount: permission denied (are you root?)"},
		{"agent is read-only", "touch /run/exec-server/agent 2>&1", "touch: /run/exec-server/agent: Read-only file system"},
		{"shm", "mount | while read a b c d; do test $c = /dev/shm && echo $a; done", "shm"},
		{"home, path", `echo "$HOME $PATH" | head -c 6`, "/root "},
		{"workspace is writable", "echo x > /workspace/f && cat /workspace/f", "x"},
		{"name server file", "head -n 1 /etc/hostname", "default"},
	} {
		if got := h.sh(tt.script); got != tt.want {
			t.Errorf("%s: %q gives %q, want %q", tt.name, tt.script, got, tt.want)
		}
	}
	h.sh("for s in HUP INT QUIT TERM USR1 KILL; do kill -$s 1; done") // as root inside
	if got := h.sh("hostname"); got == hostname {
		t.Errorf("the host's own name %q is seen inside", got)
	}
}

func TestConnectionsShareTheirEnvironmentAndNoOther(t *testing.T) {
	s := newRoot(t, "").serve()
	a, b, other := s.connect("/", ""), s.connect("/environments/default", ""), s.connect("/environments/Other_1", "")
	a.sh("echo mine > /tmp/f; echo mine > /workspace/f")
	if got := b.sh("cat /tmp/f /workspace/f"); got != "mine\nmine" {
		t.Errorf("the second connection of the environment sees %q", got)
	}
	if got := other.sh("ls /tmp /workspace; hostname"); got != "/tmp:\n\n/workspace:\nother-1" {
		t.Errorf("the other environment sees %q", got)
	}
	if one, two := a.sh("cat /proc/self/uid_map"), other.sh("cat /proc/self/uid_map"); one == two {
		t.Errorf("two environments have the same range of ids: %q", one)
	}
}

func TestWorkspaceOutlivesItsContainer(t *testing.T) {
	r := newRoot(t, "")
	s := r.serve()
	s.connect("/", "").sh("echo kept > /workspace/f; echo lost > /tmp/f")
	if code := s.stop(15); code != 0 {
		t.Errorf("SIGTERM ends the server with %d", code)
	}
	if got := r.serve().connect("/", "").sh("cat /workspace/f /tmp/f 2>&1"); got != "kept\ncat: can't open '/tmp/f': No such file or directory" {
		t.Errorf("a new container over the workspace sees %q", got)
	}
}

func TestImageUserEnvironmentAndWorkingDirectory(t *testing.T) {
	r := newRoot(t, "[profile.default]\nimage = \"test/user:1\"\n[profile.root]\nimage = \"test/user:1\"\nuser = \"root\"\nenv = { COLOR = \"blue\" }\n")
	r.importImage(busyboxTar, "test/user:1", "--user", "worker", "--cwd", "/srv/deep", "-e", "COLOR=red", "-e", "PATH=/bin")
	h := r.serve().connect("/", "")
	if got := h.sh(`id; echo "$HOME $COLOR"; stat -c %u:%g /workspace /srv/deep`); got != "uid=1234(worker) gid=1234(worker) groups=77(extra),1234(worker)\n/home/worker red\n1234:1234\n1234:1234" &&
		got != "uid=1234(worker) gid=1234(worker) groups=77(extra)\n/home/worker red\n1234:1234\n1234:1234" {
		t.Errorf("as the image's user: %q", got)
	}
	info, err := h.call("environment/info", nil)
	if err != nil || info.Get("cwd").Str() != "file:///srv/deep" || info.Get("userHomeDir").Str() != "file:///home/worker" {
		t.Errorf("environment/info: %v, cwd %q, home %q", err, info.Get("cwd").Str(), info.Get("userHomeDir").Str())
	}
	// Files are made and refused as that user too.
	if _, err := h.call("fs/writeFile", map[string]any{"path": "file:///workspace/new", "dataBase64": "eA=="}); err != nil {
		t.Error(err)
	}
	if got := h.sh("stat -c %u /workspace/new"); got != "1234" {
		t.Errorf("a file written by the protocol belongs to %q", got)
	}
	if _, err := h.call("fs/writeFile", map[string]any{"path": "file:///etc/passwd", "dataBase64": "eA=="}); err == nil || err.Error() != "Permission denied (os error 13)" {
		t.Errorf("writing root's file as the user: %v", err)
	}
	// The user can neither signal the agent's threads nor set their limits.
	h.sh(`for t in /proc/1/task/*; do for s in TERM QUIT KILL SEGV; do kill -$s ${t##*/}; done; done 2>/dev/null`)
	if got := h.sh("echo alive"); got != "alive" {
		t.Errorf("after signals from its user the agent says %q", got)
	}
	out, _, code := cli(t, "", "--config", r.config, "run", "--profile", "root", "--", "sh", "-c", "id -u; echo $COLOR; pwd")
	if out != "0\nblue\n/srv/deep\n" || code != 0 {
		t.Errorf("the profile's user and variables: %q, exit %d", out, code)
	}
}

func TestImageWithoutAShell(t *testing.T) {
	r := newRoot(t, "[profile.default]\nimage = \"test/static:1\"\n")
	r.importImage(staticTar, "test/static:1")
	h := r.serve().connect("/", "")
	if got := h.run("/busybox", "echo", "hello"); got != "hello" {
		t.Errorf("the only program says %q", got)
	}
	if got := h.run("/busybox", "ls", "/"); !strings.Contains(got, "workspace") {
		t.Errorf("the root has %q", got)
	}
}

func TestLimitsOfTheProfile(t *testing.T) {
	r := newRoot(t, "[profile.default]\nimage = \"test/busybox:1\"\nmemory = \"64MiB\"\npids = 64\nuser = \"1234\"\ncpus = 0.5\nshm_size = \"8MiB\"\n")
	h := r.serve().connect("/", "")
	if got := h.sh("dd if=/dev/zero of=/dev/shm/f bs=1M count=16 2>&1 | head -n 1"); !strings.Contains(got, "No space left") {
		t.Errorf("/dev/shm over its size: %q", got)
	}
	_, p := h.start("/bin/sh", "-c", "dd if=/dev/zero of=/dev/null bs=128M count=1")
	wait(t, p.exited, "the memory hog")
	if p.code == 0 {
		t.Error("128 MiB fit into 64 MiB of memory")
	}
	if got := h.sh("for i in $(seq 200); do sleep 5 & done 2>&1; echo started"); !strings.Contains(got, "can't fork") {
		t.Errorf("200 processes fit under a limit of 64: %q", got)
	}
	// Many small ones must not get the agent killed in their stead.
	h.sh("for i in $(seq 14); do (dd if=/dev/zero bs=6M count=1 2>/dev/null | sleep 1) & done; wait")
	if got := h.sh("echo alive"); got != "alive" {
		t.Errorf("after 14 hogs the agent says %q", got)
	}
	if got := readCgroup(t, r, "cpu.cfs_quota_us", "cpu.max"); got != "50000" && got != "50000 100000" {
		t.Errorf("half a processor is a quota of %q", got)
	}
}

// readCgroup reads a file of the only container's cgroup, by its name on v1 or v2.
func readCgroup(t testing.TB, r *root, v1, v2 string) string {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/*/" + r.cgroup() + "/e-default-*/" + v1, "/sys/fs/cgroup/" + r.cgroup() + "/e-default-*/" + v2} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			data, err := os.ReadFile(found[0])
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(data))
		}
	}
	t.Fatal("the container's cgroup was not found")
	return ""
}
