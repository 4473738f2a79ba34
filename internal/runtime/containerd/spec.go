package containerd

import (
	"context"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/runtime"
)

const (
	// guestDir is where the agent and its socket are in a container.
	guestDir    = "/run/exec-server"
	workspace   = "/workspace"
	defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// plan is what a container is made from.
type plan struct {
	id     string // of the container
	spec   runtime.Spec
	image  ocispec.ImageConfig
	env    environment
	state  stateDir
	agent  string
	helper string
	cgroup cgroupTree
	task   client.Task // set by start, for what undoes it
}

// opts make the OCI spec. The seccomp profile is last because it depends on the
// capabilities.
func (p *plan) opts() []oci.SpecOpts {
	return []oci.SpecOpts{oci.WithDefaultUnixDevices, p.apply, seccomp.WithDefaultProfile(), allowPivot}
}

// allowPivot lets the agent give a confined command another root, which the
// default profile has in no set.
func allowPivot(_ context.Context, _ oci.Client, _ *containers.Container, s *oci.Spec) error {
	s.Linux.Seccomp.Syscalls = append(s.Linux.Seccomp.Syscalls, specs.LinuxSyscall{Names: []string{"pivot_root"}, Action: specs.ActAllow})
	return nil
}

// apply turns containerd's default spec into the sandbox's. The masked and the
// read-only paths stay as they are.
func (p *plan) apply(_ context.Context, _ oci.Client, _ *containers.Container, s *oci.Spec) error {
	s.Hostname = hostname(p.spec.Name)
	p.process(s.Process)
	s.Mounts = p.mounts(s.Mounts)

	s.Linux.Namespaces = append(s.Linux.Namespaces,
		specs.LinuxNamespace{Type: specs.UserNamespace},
		specs.LinuxNamespace{Type: specs.CgroupNamespace})
	s.Linux.UIDMappings = p.env.ids().mappings()
	s.Linux.GIDMappings = p.env.ids().mappings()
	s.Linux.CgroupsPath = p.cgroup.path(p.id)
	p.cgroup.limit(s.Linux.Resources, p.spec)
	return nil
}

// process makes the agent PID 1. It runs as the container's root, to start each
// command as the user that it should be.
func (p *plan) process(s *specs.Process) {
	s.Args = append([]string{
		guestDir + "/agent",
		"--socket", guestDir + "/io/agent.sock",
		"--user", first(p.spec.User, p.image.User, "0"),
		"--cwd", first(p.spec.Cwd, p.image.WorkingDir, workspace),
		"--workspace", workspace,
	}, p.spec.AgentArgs...)
	if p.helper != "" {
		s.Args = append(s.Args, "--helper", guestDir+"/helper")
	}
	under := append([]string{defaultPath}, p.image.Env...)
	if p.spec.Network.Intercept {
		s.Args = append(s.Args, "--ca", guestCA, "--ca-bundle", guestBundle)
		under = append(under, trust...)
	}
	s.Env = overlay(under, p.spec.Env)
	s.Cwd = "/"
	// As in usual containers: sudo and the like work.
	s.NoNewPrivileges = false
	// What the agent needs to confine commands, in the container's own namespaces.
	// It keeps both from them, and the system calls that come with them.
	for _, set := range []*[]string{&s.Capabilities.Bounding, &s.Capabilities.Effective, &s.Capabilities.Permitted} {
		*set = append(*set, "CAP_SYS_ADMIN", "CAP_NET_ADMIN")
	}
	s.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: 1024, Hard: hardFiles()}}
	if n := uint64(max(0, p.spec.Pids)); n > 0 {
		// For each user of the container, so that commands that run as another
		// than root leave the agent the threads that it needs. The cgroup has room
		// for two.
		n = atMost(unix.RLIMIT_NPROC, n)
		s.Rlimits = append(s.Rlimits, specs.POSIXRlimit{Type: "RLIMIT_NPROC", Soft: n, Hard: n})
	}
	// Not less than 0, though runc could set it: every process in the container
	// could take the agent's value for itself, and one with -999 would make the
	// kernel kill the host's processes first. The agent raises its commands' own.
	s.OOMScoreAdj = new(int)
}

// first returns the first that is not empty.
func first(of ...string) string {
	i := slices.IndexFunc(of, func(s string) bool { return s != "" })
	return of[i]
}

// overlay lays NAME=VALUE pairs over others. The last of a name wins; the order
// is that of the first.
func overlay(under, over []string) []string {
	var out []string
	at := map[string]int{}
	for _, pair := range slices.Concat(under, over) {
		name, _, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			continue
		}
		if i, have := at[name]; have {
			out[i] = pair
			continue
		}
		at[name] = len(out)
		out = append(out, pair)
	}
	return out
}
