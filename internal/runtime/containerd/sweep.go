package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
)

// sweep removes what is left of sandboxes that are not there. It must not run
// while a sandbox is being made.
func (r *Runtime) sweep(ctx context.Context) error {
	var errs []error
	failed := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	kept, names := r.kept()
	failed("containers", r.sweepContainers(ctx, kept))
	for id := range r.cgroup.containers() {
		if !kept[id] {
			failed("cgroup", r.cgroup.remove(id))
		}
	}
	entries, err := os.ReadDir(filepath.Join(r.opts.State, "e"))
	failed("shared directories", err)
	for _, e := range entries {
		if !kept[e.Name()] {
			failed("shared directory", r.stateDir(e.Name()).remove())
		}
	}
	failed("leases", r.sweepLeases(ctx, kept))
	failed("snapshots", r.sweepSnapshots(ctx, kept))
	records, err := r.envs.list()
	failed("environments", err)
	for _, record := range records {
		if record.Ephemeral && !names[record.Name] {
			failed("ephemeral environment", r.envs.remove(record.Name))
		}
	}
	return errors.Join(errs...)
}

// sweepContainers ends what runs of containers that containerd does not know of.
func (r *Runtime) sweepContainers(ctx context.Context, kept map[string]bool) error {
	if r.opts.Server == nil {
		return nil // that is for containerd to do
	}
	ids, err := r.opts.Server.leftovers()
	errs := []error{err}
	for id := range ids {
		if !kept[id] {
			errs = append(errs, r.opts.Server.scrub(ctx, id))
		}
	}
	errs = append(errs, r.opts.Server.clearIDMapped())
	if len(kept) == 0 {
		errs = append(errs, r.opts.Server.forgetShims())
	}
	return errors.Join(errs...)
}

// sweepLeases removes the leases under which sandboxes were made.
func (r *Runtime) sweepLeases(ctx context.Context, kept map[string]bool) error {
	service := r.client.LeasesService()
	found, err := service.List(ctx)
	errs := []error{err}
	for _, lease := range found {
		if strings.HasPrefix(lease.ID, idPrefix) && !kept[lease.ID] {
			errs = append(errs, service.Delete(ctx, leases.Lease{ID: lease.ID}))
		}
	}
	return errors.Join(errs...)
}

// sweepSnapshots removes file systems without a container, and those whose
// owners were being changed when the daemon died. Images' layers stay.
func (r *Runtime) sweepSnapshots(ctx context.Context, kept map[string]bool) error {
	service := r.client.SnapshotService(snapshotter)
	var keys []string
	err := service.Walk(ctx, func(_ context.Context, info snapshots.Info) error {
		ours := strings.HasPrefix(info.Name, idPrefix) && !kept[info.Name]
		if info.Kind == snapshots.KindActive && (ours || strings.HasSuffix(info.Name, "-remap")) {
			keys = append(keys, info.Name)
		}
		return nil
	})
	errs := []error{err}
	for _, key := range keys {
		errs = append(errs, service.Remove(ctx, key))
	}
	return errors.Join(errs...)
}
