package containerd

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"

	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/manager"
	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/task"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/shutdown"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/log"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
)

// shimName is the name of the link to this program that containerd starts.
const shimName = "containerd-shim-runc-v2"

// ShimMain runs containerd's shim if that is what this process was started for,
// and returns true once the shim has ended; main must then return. It must be
// the first thing that main does, before flags are defined or parsed.
func ShimMain() bool {
	// The link's name tells, and the first argument in case that somebody made
	// the link symbolic: a shim starts itself again by the name of its binary.
	if filepath.Base(os.Args[0]) != shimName && (len(os.Args) < 2 || os.Args[1] != "-namespace") {
		return false
	}
	// A shim loads every plugin that is registered; the daemon's would open the
	// daemon's stores. It has use for one only.
	registry.Reset()
	registry.Register(&plugin.Registration{
		Type:     plugins.TTRPCPlugin,
		ID:       "task",
		Requires: []plugin.Type{plugins.EventPlugin, plugins.InternalPlugin},
		InitFn: func(ic *plugin.InitContext) (any, error) {
			publisher, err := ic.GetByID(plugins.EventPlugin, "publisher")
			if err != nil {
				return nil, err
			}
			stop, err := ic.GetByID(plugins.InternalPlugin, "shutdown")
			if err != nil {
				return nil, err
			}
			return task.NewTaskService(ic.Context, publisher.(shim.Publisher), stop.(shutdown.Service))
		},
	})
	// What a shim prints ends up on the daemon's standard error. What matters
	// comes back as the error of a call.
	_ = log.SetLevel(log.FatalLevel.String())
	if i := slices.Index(os.Args, "-address"); i >= 0 && i+1 < len(os.Args) {
		if state := filepath.Dir(os.Args[i+1]); filepath.IsAbs(state) {
			_ = mount.SetTempMountLocation(tempMounts(state))
		}
	}
	flag.CommandLine = flag.NewFlagSet(shimName, flag.ExitOnError)
	shim.RunShim(context.Background(), manager.NewShimManager("io.containerd.runc.v2"))
	return true
}
