package containerd

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/exec-server/exec-server/internal/runtime"
)

func TestLimits(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	image := busyboxImage(t, d.ctx, d.server.Client())
	is := map[string]*sandbox{
		"limited": d.create(t, runtime.Spec{Name: "limited", Image: image, CPUs: 1.5, MemoryBytes: 300 << 20, Pids: 77}),
		"free":    d.create(t, runtime.Spec{Name: "free", Image: image}),
	}
	type limits = map[string]string
	limited := limits{
		"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000", "pids/pids.max": "154",
		"memory/memory.limit_in_bytes": "314572800", "memory/memory.memsw.limit_in_bytes": "314572800",
	}
	free := limits{"cpu/cpu.cfs_quota_us": "-1", "pids/pids.max": "max", "memory/memory.limit_in_bytes": "9223372036854771712"}
	if d.cgroup.v2 {
		limited = limits{
			"cpu.max": "150000 100000", "pids.max": "154", "memory.max": "314572800",
			"memory.swap.max": "0", "memory.oom.group": "0", // the agent must outlive a hog
		}
		free = limits{"cpu.max": "max 100000", "pids.max": "max", "memory.max": "max"}
	}
	for name, files := range map[string]limits{"limited": limited, "free": free} {
		for file, want := range files {
			dir, base := filepath.Split(file)
			path := filepath.Join(cgroupMount, dir, d.cgroup.path(is[name].task.ID()), base)
			text, err := os.ReadFile(path)
			if err != nil && !(strings.Contains(base, "sw") && !d.cgroup.swap) {
				t.Error(err)
			} else if got := strings.TrimSpace(string(text)); err == nil && got != want {
				t.Errorf("%s: %s, not %s", path, got, want)
			}
		}
	}
}

func TestUserNamespace(t *testing.T) {
	for _, idmap := range []bool{true, false} {
		t.Run(fmt.Sprintf("idmap=%t", idmap), func(t *testing.T) {
			p := newPlace(t)
			d := p.startDaemon(t)
			if idmap && !d.idmap {
				t.Skip("this file system cannot map ids")
			}
			d.idmap = idmap
			image := busyboxImage(t, d.ctx, d.server.Client())
			s := d.create(t, runtime.Spec{Name: "mapped", Image: image})
			if s.ids.base < idFirst {
				t.Fatalf("the ids begin with %d", s.ids.base)
			}
			if got := askOf(t, s, "!read /proc/self/uid_map"); strings.Join(strings.Fields(got), " ") != fmt.Sprintf("0 %d 65536", s.ids.base) {
				t.Errorf("the map of user ids: %s", got)
			}
			if got := askOf(t, s, "!exec /bin/id -u"); got != "0" {
				t.Errorf("in the container, the agent is user %s", got)
			}
			if got := owner(t, fmt.Sprintf("/proc/%d", s.pid)); got != s.ids.base {
				t.Errorf("on the host, the agent is user %d", got)
			}
			// The image's own files are root's in the container.
			if got := askOf(t, s, "!exec /bin/stat -c %u:%g /bin/busybox"); got != "0:0" {
				t.Errorf("the image's files belong to %s", got)
			}
			askOf(t, s, "!write /workspace/inside x")
			askOf(t, s, "!write /upper-file x")
			if got := owner(t, filepath.Join(p.root, "environments/mapped/workspace/inside")); got != s.ids.base {
				t.Errorf("a file in the workspace is user %d's", got)
			}
			upper := find(t, filepath.Join(p.root, "io.containerd.snapshotter.v1.overlayfs/snapshots"), "upper-file")
			if got := owner(t, upper); got != s.ids.base {
				t.Errorf("a file in the container's own layer is user %d's", got)
			}
			if info, err := os.Stat(filepath.Join(p.root, "environments")); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the environments are open to other users: %v, %v", info.Mode(), err)
			}
		})
	}
}

func TestConfinement(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	image := busyboxImage(t, d.ctx, d.server.Client())
	s := d.create(t, runtime.Spec{Name: "confined", Image: image, ShmBytes: 48 << 20})
	status := askOf(t, s, "!read /proc/self/status")
	for _, want := range []string{
		"CapEff:\t00000000a82435fb", // the default set of containerd and docker, and two for confining
		"CapBnd:\t00000000a82435fb",
		"CapAmb:\t0000000000000000",
		"NoNewPrivs:\t0",
		"Seccomp:\t2",
	} {
		if !strings.Contains(status, want+"\n") {
			t.Errorf("the agent's status lacks %q:\n%s", want, status)
		}
	}
	group := "/sys/fs/cgroup/pids/x"
	if d.cgroup.v2 {
		group = "/sys/fs/cgroup/x"
	}
	for question, want := range map[string]string{
		"!read /proc/self/oom_score_adj":                       "0",
		"!read /proc/keys":                                     "",
		"!write /proc/sys/kernel/hostname x":                   "error: open /proc/sys/kernel/hostname: read-only file system",
		"!write " + group + " y":                               "error: open " + group + ": read-only file system",
		"!write /run/exec-server/agent x":                      "error: open /run/exec-server/agent: read-only file system",
		"!exec /bin/hostname":                                  "confined",
		"!exec /bin/ls /sys/class/net":                         "lo",
		"!exec /bin/stat -c %a:%u /workspace":                  "755:0",
		"!exec /bin/stat -c %a:%u /etc/hosts":                  "644:0",
		"!exec /bin/stat -c %a /tmp":                           "1777",
		"!exec /bin/stat -c %a:%u /etc/hostname":               "644:0",
		"!exec /bin/stat -c %a:%F /dev/null":                   "666:character special file",
		"!exec /bin/stat -f -c %b*%S /dev/shm":                 "12288*4096",
		"!exec /bin/stat -c %F /run/exec-server/io/agent.sock": "socket",
	} {
		if got := askOf(t, s, question); got != want {
			t.Errorf("%s: %q, not %q", question, got, want)
		}
	}
	if got := askOf(t, s, "!exec /bin/ip link show lo"); !strings.Contains(got, "LOOPBACK,UP") {
		t.Errorf("lo is not up: %s", got)
	}
	for _, ns := range []string{"pid", "mnt", "ipc", "uts", "cgroup", "net", "user"} {
		ours, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			t.Fatal(err)
		}
		if theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", s.pid, ns)); err != nil || theirs == ours {
			t.Errorf("the %s namespace is the host's, %v", ns, err)
		}
	}
	limits := askOf(t, s, "!exec /bin/cat /proc/self/limits")
	if want := fmt.Sprintf("1024 %d files", hardFiles()); !strings.Contains(strings.Join(strings.Fields(limits), " "), want) {
		t.Errorf("the limits lack %q:\n%s", want, limits)
	}
	// What is shared with the host cannot grow.
	if got := askOf(t, s, "!exec /bin/dd if=/dev/zero of=/etc/hosts bs=64k count=100"); !strings.Contains(got, "error") {
		t.Errorf("the shared directory took 6 MB: %s", got)
	}
}

// owner returns who owns the file.
func owner(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// find returns the file of that name in a tree.
func find(t *testing.T, root, name string) string {
	t.Helper()
	var found string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == name {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		t.Fatalf("no %s in %s: %v", name, root, err)
	}
	return found
}

func TestLimitsOfUnifiedHierarchy(t *testing.T) {
	for _, swap := range []bool{true, false} {
		var got specs.LinuxResources
		cgroupTree{v2: true, swap: swap}.limit(&got, runtime.Spec{CPUs: 0.001, MemoryBytes: 5000})
		if *got.CPU.Quota != 1000 || *got.Memory.Limit != 5000 || got.Memory.Swap != nil || got.Pids != nil {
			t.Errorf("limits %+v", got)
		}
		if (got.Unified["memory.swap.max"] == "0") != swap {
			t.Errorf("limits %q", got.Unified)
		}
	}
	var got specs.LinuxResources
	cgroupTree{v2: true, swap: true}.limit(&got, runtime.Spec{})
	if got.CPU != nil || got.Memory != nil || got.Pids != nil || got.Unified != nil {
		t.Errorf("no limits are %+v", got)
	}
}
