package doctor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/testroot"
)

func TestKernelVersion(t *testing.T) {
	for release, status := range map[string]Status{
		"6.18.5": OK, "5.19.0-rc1": OK, "5.15.0-91-generic": Warn, "5.10.0": Warn, "5.9.1": Fail, "4.18.0-513.el8": Fail, "odd": Warn,
	} {
		if c := kernelVersion(release); c.Status != status {
			t.Errorf("%s: %+v", release, c)
		}
	}
}

// machine is a fake /proc and /sys.
func machine(t *testing.T, files map[string]string) Options {
	t.Helper()
	sys := t.TempDir()
	for name, text := range files {
		path := filepath.Join(sys, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Options{sys: sys}
}

func TestCgroups(t *testing.T) {
	const (
		root    = "21 1 8:1 / / rw - ext4 /dev/vda rw\n"
		unified = "30 21 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid  = "31 21 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		cpu     = "32 21 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
		memory  = "33 21 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		pids    = "34 21 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
	)
	places := map[string]string{"sys/fs/cgroup/cpu,cpuacct/tasks": "", "sys/fs/cgroup/memory/tasks": "", "sys/fs/cgroup/pids/tasks": "", "sys/fs/cgroup/cgroup.subtree_control": ""}
	for _, test := range []struct {
		mounts, enabled string
		status          Status
		detail          string
	}{
		{root + unified, "cpuset cpu io memory pids", OK, "v2 with cpu, memory, pids in /sys/fs/cgroup"},
		{root + unified, "cpuset cpu pids", Fail, "v2, but without memory"},
		{root + hybrid + cpu + memory + pids, "", OK, "v1 (hybrid) with cpu, memory, pids in /sys/fs/cgroup/cpu,cpuacct, /sys/fs/cgroup/memory, /sys/fs/cgroup/pids"},
		{root + cpu + memory + pids, "", OK, "v1 with"},
		{root + hybrid + cpu, "", Fail, "v1 (hybrid), but without memory and pids"},
		{root, "", Fail, "no cgroup file system is mounted"},
	} {
		files := map[string]string{"proc/self/mountinfo": test.mounts, "sys/fs/cgroup/cgroup.controllers": test.enabled}
		for name, text := range places {
			files[name] = text
		}
		o := machine(t, files)
		want(t, o.cgroups(), test.status, test.detail)
		if left, _ := filepath.Glob(o.sys + "/sys/fs/cgroup/*doctor*"); left != nil {
			t.Error(left)
		}
	}
	want(t, machine(t, map[string]string{"proc/self/mountinfo": unified, "sys/fs/cgroup": "a file"}).cgroups(), Fail, "v2, but without")
	want(t, machine(t, nil).cgroups(), Fail, "open ")
}

func TestUserNamespacesOff(t *testing.T) {
	o := machine(t, map[string]string{"proc/sys/user/max_user_namespaces": "0\n"})
	want(t, o.userNamespaces(), Fail, "switched off: /proc/sys/user/max_user_namespaces is 0")
}

func TestRunc(t *testing.T) {
	for text, test := range map[string]struct {
		status Status
		detail string
	}{
		"echo 'runc version 1.1.5+ds1'":  {OK, "1.1.5 at "},
		"echo 'runc version 1.1.4'":      {Fail, "1.1.4 at "},
		"echo 'runc version 1.0.0-rc93'": {Fail, "1.0.0 at "},
		"echo 'runc version 1.5.2'":      {OK, "1.5.2 at "},
		"echo 'crun version 1.8.1'":      {Warn, ""},
		"exit 3":                         {Fail, ""},
	} {
		path := filepath.Join(t.TempDir(), "runc")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		want(t, runc(t.Context(), path), test.status, test.detail)
	}
	want(t, runc(t.Context(), "/nowhere/runc"), Fail, `"/nowhere/runc": stat /nowhere/runc: no such file`)
	t.Setenv("PATH", t.TempDir())
	if c := runc(t.Context(), ""); c.Status != Fail || c.Fix != "apt-get install runc" {
		t.Error(c)
	}
	if c := mmdebstrap(); c.Status != Warn || c.Fix != "apt-get install mmdebstrap" {
		t.Error(c)
	}
}

func TestContainerd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	want(t, containerd(t.Context(), path), Fail, "dial unix "+path)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want(t, containerd(t.Context(), path), OK, "listens on "+path)
}

func TestSockets(t *testing.T) {
	want(t, sockets("/"+strings.Repeat("x", 39)), OK, "fit below")
	want(t, sockets("/"+strings.Repeat("x", 40)), Fail, "/xxx")
}

// TestSmallDisk has root on file systems that are too small and read-only.
func TestSmallDisk(t *testing.T) {
	testroot.Need(t)
	for _, test := range []struct {
		options string
		flags   uintptr
		disk    Status
		inodes  Status
	}{
		{"size=50m,nr_inodes=100", 0, Fail, Fail},
		{"size=200m,nr_inodes=50000", 0, Warn, Warn},
		{"size=200m", unix.MS_RDONLY, Fail, OK},
	} {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", test.flags, test.options); err != nil {
			t.Fatal(err)
		}
		root := filepath.Join(dir, "a/b")
		if c := disk(root); c.Status != test.disk {
			t.Errorf("%s: %+v", test.options, c)
		}
		if c := inodes(root); c.Status != test.inodes && test.inodes != OK {
			t.Errorf("%s: %+v", test.options, c)
		}
		err := Preflight(root, "")
		if failed := test.disk == Fail; (err != nil) != failed || failed && !strings.HasPrefix(err.Error(), "disk space: ") {
			t.Errorf("%s: %v", test.options, err)
		}
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}
}

// TestOverlayOnOverlay is what a daemon in a container may have.
func TestOverlayOnOverlay(t *testing.T) {
	testroot.Need(t)
	dir := t.TempDir()
	for _, sub := range []string{"l", "u", "w", "m"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	merged := filepath.Join(dir, "m")
	if err := unix.Mount("overlay", merged, "overlay", 0, fmt.Sprintf("lowerdir=%[1]s/l,upperdir=%[1]s/u,workdir=%[1]s/w", dir)); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(merged, unix.MNT_DETACH)
	want(t, Options{Root: merged}.overlay(), Fail, "does not work at "+merged)
	if left, _ := os.ReadDir(merged); len(left) != 0 {
		t.Error(left)
	}
}
