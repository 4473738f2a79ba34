package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/image"
	"github.com/exec-server/exec-server/internal/runtime"
)

// spec is what an environment of that name and profile is made from.
func spec(cfg *config.Config, name, profile string) runtime.Spec {
	p := cfg.Profiles[profile]
	s := runtime.Spec{
		Name: name, Profile: profile, Image: p.Image, User: p.User, Cwd: p.Cwd,
		Network: p.Network.Policy(),
		CPUs:    p.CPUs, MemoryBytes: int64(p.Memory), Pids: p.Pids, ShmBytes: int64(p.ShmSize),
		AgentArgs: []string{
			"--detach", cfg.Session.Detach.Duration.String(),
			"--keep-closed", cfg.Session.KeepClosed.Duration.String(),
			"--output-bytes", fmt.Sprint(int64(cfg.Session.OutputBytes)),
		},
	}
	if p.Pids > 0 {
		// A connection and a running command each take the agent a thread.
		s.AgentArgs = append(s.AgentArgs,
			"--max-processes", fmt.Sprint(max(8, p.Pids/2)), "--max-connections", fmt.Sprint(min(256, max(8, p.Pids/4))))
	}
	for _, key := range slices.Sorted(maps.Keys(p.Env)) {
		s.Env = append(s.Env, key+"="+p.Env[key])
	}
	if s.Image = imageName(s.Image); cfg.Runtime == "host" {
		s.Image = "" // the machine's own files
	}
	return s
}

// imageName is the name under which the store has an image; "" is the default
// image. A name that is not valid is left to be complained about where it is
// looked for.
func imageName(name string) string {
	if name == "" {
		return defaultImage()
	}
	if full, err := image.Normalize(name); err == nil {
		return full
	}
	return name
}

// imageMissing says what to do about an image that the store lacks.
func imageMissing(cfg *config.Config, name string) error {
	where, flag := cfg.Root, " --root "+cfg.Root
	if cfg.Containerd.Address != "" {
		where, flag = cfg.Containerd.Address, " --containerd-address "+cfg.Containerd.Address
	}
	if name == defaultImage() {
		return fmt.Errorf("the default image is not in the store of %s; make it with: exec-server image build%s", where, flag)
	}
	return fmt.Errorf("image %q is not in the store of %s; get it with: exec-server image pull%s %s", name, where, flag, name)
}
