package containerd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
)

// purge kills and removes whatever there is of a container; the environment's
// workspace stays. The task may be nil if it is not known. It carries on after
// an error, and can be called again.
func (r *Runtime) purge(ctx context.Context, id string, task client.Task) error {
	var errs []error
	failed := func(what string, err error) {
		if err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	container, err := r.client.LoadContainer(ctx, id)
	failed("find the container", err)
	if err == nil && task == nil {
		task, err = container.Task(ctx, nil)
		failed("find the task", err)
	}
	if task != nil {
		err = deleteTask(ctx, task)
	}
	// Without a task that could be deleted, processes may be left: of one that
	// was being made, or whose shim does not answer.
	if server := r.opts.Server; server != nil && (task == nil || err != nil) {
		failed("end the container's processes", server.scrub(ctx, id))
		if task != nil {
			err = deleteTask(ctx, task)
		}
	}
	if task != nil {
		failed("delete the task", err)
	}
	if container != nil {
		failed("delete the container", container.Delete(ctx))
	}
	// A copy of an image that was not finished is in the way of the next, so the
	// garbage collector must be through with it.
	failed("end the lease", r.client.LeasesService().Delete(ctx, leases.Lease{ID: id}, leases.SynchronousDelete))
	failed("remove the file system", r.client.SnapshotService(snapshotter).Remove(ctx, id))
	failed("remove the cgroup", r.cgroup.remove(id))
	failed("remove the shared directory", r.stateDir(id).remove())
	r.reapSoon()
	return errors.Join(errs...)
}

// deleteTask kills and deletes a task, within ten seconds: a shim may not answer.
// It tries again for two: while containerd notices that a shim has died, it fails.
func deleteTask(ctx context.Context, task client.Task) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		_, err := task.Delete(ctx, client.WithProcessKill)
		if err == nil || errdefs.IsNotFound(err) || wait > time.Second {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}
