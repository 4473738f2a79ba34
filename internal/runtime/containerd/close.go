package containerd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Close implements runtime.Runtime. It waits for what is being made or removed,
// and stops the embedded containerd. If no sandbox is left, it removes what
// does not last.
func (r *Runtime) Close() error {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.tasks.Wait()
	if err := r.veth.Close(); err != nil {
		r.opts.Log.Error().Err(err).Msg("close the runtime")
	}
	// These remove what is empty.
	r.reapAll()
	r.cgroup.removeParent()
	_ = unix.Rmdir(filepath.Join(r.opts.State, "e"))
	if r.opts.Server == nil {
		return nil
	}
	r.opts.Server.Stop()
	if err := r.opts.Server.stopped; err != nil {
		return fmt.Errorf("close the runtime: %w", err)
	}
	return nil
}

// clearState removes what is in the state directory of us and of containerd, if
// nothing runs any more. The caller has the lock of the store.
func (s *Server) clearState() error {
	shared, err := filepath.Glob(filepath.Join(s.opts.State, "e", "*"))
	running, err2 := filepath.Glob(filepath.Join(s.opts.State, taskPlugin, "*", "*"))
	if err := errors.Join(err, err2); err != nil || len(shared)+len(running) > 0 {
		return err
	}
	if err := s.awaitHelpers(); err != nil {
		return err
	}
	if err := unmountBelow(s.opts.State); err != nil {
		return err
	}
	// Others may have files there too.
	paths, err := filepath.Glob(filepath.Join(s.opts.State, "io.containerd.*"))
	errs := []error{err}
	for _, dir := range []string{"s", "e"} {
		paths = append(paths, filepath.Join(s.opts.State, dir))
	}
	for _, path := range append(paths, tempMounts(s.opts.State), runcRoot(s.opts.State)) {
		errs = append(errs, removeTree(path))
	}
	// A shim that died before it knew better has had runc use its usual place.
	for _, dir := range []string{"/run/containerd/runc/" + s.opts.Namespace, "/run/containerd/runc", "/run/containerd"} {
		_ = unix.Rmdir(dir)
	}
	return errors.Join(errs...)
}

// unmountBelow unmounts everything below a directory, the last mounted first.
func unmountBelow(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(m.Mountpoint, dir+"/"), false
	})
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	for _, m := range slices.Backward(mounts) {
		err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", m.Mountpoint, err)
		}
	}
	return nil
}
