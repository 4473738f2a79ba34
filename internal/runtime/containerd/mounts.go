package containerd

import (
	"fmt"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// mounts returns the default mounts with the changes and additions.
func (p *plan) mounts(mounts []specs.Mount) []specs.Mount {
	shm := p.spec.ShmBytes
	if shm <= 0 {
		shm = 64 << 20
	}
	for i := range mounts {
		if mounts[i].Destination == "/dev/shm" {
			mounts[i].Options = []string{"nosuid", "noexec", "nodev", "mode=1777", fmt.Sprintf("size=%d", shm)}
		}
	}
	bind := func(from, to string, options ...string) {
		mounts = append(mounts, specs.Mount{
			Type: "bind", Source: from, Destination: to,
			Options: append([]string{"rbind", "rprivate"}, options...),
		})
	}
	mounts = append(mounts, specs.Mount{
		Type: "cgroup", Source: "cgroup", Destination: "/sys/fs/cgroup",
		Options: []string{"nosuid", "noexec", "nodev", "relatime", "ro"},
	})
	bind(p.agent, guestDir+"/agent", "ro", "nosuid", "nodev")
	if p.helper != "" {
		bind(p.helper, guestDir+"/helper", "ro", "nosuid", "nodev")
	}
	if p.spec.Network.Intercept {
		bind(filepath.Join(string(p.state), filepath.Base(guestCA)), guestCA, "ro", "nosuid", "nodev", "noexec")
	}
	bind(p.state.io(), guestDir+"/io", "rw")
	bind(p.env.workspace(), workspace, "rw")
	for _, name := range []string{"resolv.conf", "hosts", "hostname"} {
		bind(string(p.state)+"/"+name, "/etc/"+name, "rw")
	}
	return mounts
}
