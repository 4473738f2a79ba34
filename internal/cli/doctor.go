package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/containerd/errdefs"

	"github.com/exec-server/exec-server/internal/doctor"
	"github.com/exec-server/exec-server/internal/image"
)

type doctorCmd struct{}

// Run prints a line for each thing that is needed, and fails if one is missing.
func (doctorCmd) Run(ctx context.Context, common *Common, std Streams) error {
	cfg, err := common.load()
	if err != nil {
		return err
	}
	if cfg.Runtime == "host" {
		_, err := fmt.Fprintln(std.Out, "ok    runtime           host: it needs nothing of this machine, and isolates nothing")
		return err
	}
	opts := doctor.Options{
		Root: cfg.Root, State: stateDir(cfg.Root),
		RuncPath: cfg.Containerd.Runc, ContainerdAddress: cfg.Containerd.Address,
		Image: cfg.Profiles[cfg.DefaultProfile].Image,
	}
	if opts.Image == "" {
		opts.Image, opts.ImageFix = defaultImage(), "exec-server image build --root "+cfg.Root
	}
	if os.Geteuid() == 0 {
		opts.HasImage = func(ctx context.Context, name string) (bool, error) {
			// Looking must not make a store where there is none.
			if _, err := os.Stat(cfg.Root); os.IsNotExist(err) && cfg.Containerd.Address == "" {
				return false, nil
			}
			ctx, c, done, err := common.store(ctx, std)
			if err != nil {
				return false, err
			}
			defer done()
			_, err = image.Find(ctx, c, name)
			if errdefs.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		}
	}
	status, err := doctor.Print(std.Out, doctor.Run(ctx, opts))
	if err == nil && status != 0 {
		return statusError(status)
	}
	return err
}
