package doctor

import (
	"context"
	"fmt"
	"os"
)

// Preflight makes the few checks without which the daemon would fail later and
// less clearly: root, cgroups, runc, and 100 MiB of disk space
// for a new root. The error is
// one line, of the first that fails, with what to do.
func Preflight(root, runcPath string) error {
	return preflight(Options{Root: root, RuncPath: runcPath})
}

func preflight(o Options) error {
	for _, check := range []func() Check{
		superuser,
		o.cgroups,
		func() Check { return runc(context.Background(), o.RuncPath) },
		func() Check {
			// A root that is in use already has to be taken up again all the same:
			// who filled it may be running there.
			if _, err := os.Stat(o.Root + "/containerd"); err == nil {
				return Check{}
			}
			return disk(o.Root)
		},
	} {
		c := check()
		if c.Status != Fail {
			continue
		}
		if c.Fix == "" {
			return fmt.Errorf("%s: %s", c.Name, c.Detail)
		}
		return fmt.Errorf("%s: %s; %s", c.Name, c.Detail, c.Fix)
	}
	return nil
}
