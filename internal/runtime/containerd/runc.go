package containerd

import (
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/containerd/containerd/api/types/runc/options"
)

// snapshotter is the one that layers and containers' file systems are in.
const snapshotter = "overlayfs"

// shimChoice says by what containers are run.
type shimChoice struct {
	runtime string // containerd's name or path of the shim
	options *options.Options
}

// chooseShim picks the embedded server's own shim, or that of containerd.
func chooseShim(opts Options) (shimChoice, error) {
	choice := shimChoice{runtime: "io.containerd.runc.v2", options: &options.Options{}}
	if opts.RuncPath != "" {
		runc, err := findRunc(opts.RuncPath)
		if err != nil {
			return shimChoice{}, err
		}
		choice.options.BinaryName = runc
	}
	if s := opts.Server; s != nil {
		choice.runtime = s.shim
		choice.options.Root = runcRoot(s.opts.State)
		if choice.options.BinaryName == "" {
			choice.options.BinaryName = s.runc
		}
	}
	return choice, nil
}

// findRunc returns the absolute path of the OCI runtime.
func findRunc(path string) (string, error) {
	if path == "" {
		path = "runc"
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("find the OCI runtime: %w", err)
	}
	return filepath.Abs(found)
}
