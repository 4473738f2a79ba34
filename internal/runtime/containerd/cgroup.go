package containerd

import (
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/cgroups/v3"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/exec-server/exec-server/internal/runtime"
)

const (
	cgroupMount = "/sys/fs/cgroup"
	// cpuPeriod is the time over which a quota of processors holds, in µs.
	cpuPeriod = 100_000
)

// cgroupTree is the part of the machine's cgroups that is ours: one parent in
// each hierarchy, and in it a cgroup for each container.
type cgroupTree struct {
	parent string   // as "/exec-server-0123456789ab"
	roots  []string // where the hierarchies are mounted
	v2     bool     // whether the unified hierarchy has the controllers
	swap   bool     // whether the kernel accounts for swap
}

// findCgroups looks at what the machine has.
func findCgroups(instance string) cgroupTree {
	t := cgroupTree{parent: "/exec-server-" + instance, v2: cgroups.Mode() == cgroups.Unified}
	if t.v2 {
		t.roots = []string{cgroupMount}
		// The root has no limits to look at, so look at our own parent. runc
		// enables the controllers in it too.
		_ = os.WriteFile(cgroupMount+"/cgroup.subtree_control", []byte("+memory"), 0)
		_ = os.Mkdir(cgroupMount+t.parent, 0o755)
		_, err := os.Stat(cgroupMount + t.parent + "/memory.swap.max")
		t.swap = err == nil
		return t
	}
	entries, _ := os.ReadDir(cgroupMount)
	for _, e := range entries {
		if e.IsDir() { // others are links to controllers that are mounted together
			t.roots = append(t.roots, filepath.Join(cgroupMount, e.Name()))
		}
	}
	_, err := os.Stat(cgroupMount + "/memory/memory.memsw.limit_in_bytes")
	t.swap = err == nil
	return t
}

// path is the container's cgroup, in every hierarchy.
func (t cgroupTree) path(id string) string { return t.parent + "/" + id }

// limit writes the limits into the resources of a container.
func (t cgroupTree) limit(to *specs.LinuxResources, spec runtime.Spec) {
	if spec.CPUs > 0 {
		quota, period := max(1000, int64(math.Round(spec.CPUs*cpuPeriod))), uint64(cpuPeriod)
		to.CPU = &specs.LinuxCPU{Quota: &quota, Period: &period}
	}
	if spec.Pids > 0 {
		twice := 2 * spec.Pids // the agent's and the commands', see plan.process
		to.Pids = &specs.LinuxPids{Limit: &twice}
	}
	if spec.MemoryBytes <= 0 {
		return
	}
	to.Memory = &specs.LinuxMemory{Limit: &spec.MemoryBytes}
	switch {
	case t.v2:
		if t.swap {
			to.Unified = map[string]string{"memory.swap.max": "0"}
		}
	case t.swap:
		to.Memory.Swap = &spec.MemoryBytes // of memory and swap together
	}
}

// containers returns the ids of the containers that have a cgroup.
func (t cgroupTree) containers() map[string]bool {
	ids := map[string]bool{}
	for _, root := range t.roots {
		entries, _ := os.ReadDir(root + t.parent)
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), idPrefix) {
				ids[e.Name()] = true
			}
		}
	}
	return ids
}
