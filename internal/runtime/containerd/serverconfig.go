package containerd

import (
	"path/filepath"

	srvconfig "github.com/containerd/containerd/v2/cmd/containerd/server/config"
)

// config is the configuration of containerd, in its version 4.
func (s *Server) config() *srvconfig.Config {
	type section = map[string]any
	return &srvconfig.Config{
		Version: 4,
		Root:    s.opts.Root,
		State:   s.opts.State,
		RequiredPlugins: []string{
			"io.containerd.grpc.v1." + clientPlugin,
			"io.containerd.server.v1." + apiPlugin,
			"io.containerd.server.v1.ttrpc",
			"io.containerd.runtime.v2.task",
			"io.containerd.snapshotter.v1.overlayfs",
		},
		Plugins: section{
			// There is no plugin of this name; containerd takes the address
			// that it gives to the shims from here.
			"io.containerd.server.v1.grpc":  section{"address": s.Address()},
			"io.containerd.server.v1.ttrpc": section{"address": s.ttrpcAddress()},
			// The names in it are hashes of 64 digits.
			"io.containerd.shim.v1.manager":         section{"socket_dir": filepath.Join(s.opts.State, "s")},
			"io.containerd.monitor.task.v1.cgroups": section{"no_prometheus": true},
			// Where id-mapped mounts do not work, layers are copied with
			// their owners changed, once per image and environment.
			"io.containerd.snapshotter.v1.overlayfs": section{"slow_chown": true},
			// A removed sandbox's files go away now and not some day.
			"io.containerd.gc.v1.scheduler": section{"deletion_threshold": 1, "schedule_delay": "100ms"},
		},
	}
}

// ttrpcAddress is the socket on which shims report the ends of containers.
func (s *Server) ttrpcAddress() string { return filepath.Join(s.opts.State, "t.sock") }

// tempMounts is where containerd and its shims mount what they need in passing.
func tempMounts(state string) string { return filepath.Join(state, "m") }

// runcRoot is where runc keeps its records.
func runcRoot(state string) string { return filepath.Join(state, "runc") }
