package containerd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/mount"
)

// taskPlugin is the directory, in root and state, of containerd's running
// containers.
const taskPlugin = "io.containerd.runtime.v2.task"

// bundles is the directory of what containerd knows of running containers.
func (s *Server) bundles() string {
	return filepath.Join(s.opts.State, taskPlugin, s.opts.Namespace)
}

// runcDir is the directory of what runc knows of running containers.
func (s *Server) runcDir() string {
	return filepath.Join(runcRoot(s.opts.State), s.opts.Namespace)
}

// leftovers returns the ids of all containers of which there are processes or
// state. Those that run are among them.
func (s *Server) leftovers() (map[string]bool, error) {
	ids := map[string]bool{}
	orphans, err := s.helpers()
	for _, o := range orphans {
		ids[o.id] = true
	}
	for _, dir := range []string{s.bundles(), s.runcDir(), filepath.Join(s.opts.Root, taskPlugin, s.opts.Namespace)} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			// containerd puts a dot before the name of what it is removing.
			ids[strings.TrimPrefix(e.Name(), ".")] = true
		}
	}
	return ids, err
}

// scrub ends the shim and the runc processes of a container and removes their
// state. It is for containers that containerd does not know, or not any more.
func (s *Server) scrub(ctx context.Context, id string) error {
	errs := []error{s.endHelpers(id)}
	if _, err := os.Lstat(filepath.Join(s.runcDir(), id)); err == nil {
		errs = append(errs, s.runcDelete(ctx, id))
	}
	for _, name := range []string{id, "." + id} {
		bundle := filepath.Join(s.bundles(), name)
		errs = append(errs,
			mount.UnmountRecursive(filepath.Join(bundle, "rootfs"), 0),
			removeTree(bundle),
			removeTree(filepath.Join(s.opts.Root, taskPlugin, s.opts.Namespace, name)))
	}
	if err := os.Remove(s.shimSocket(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// shimSocket is where the container's shim listens.
func (s *Server) shimSocket(id string) string {
	hash := sha256.Sum256([]byte(filepath.Join(s.Address(), s.opts.Namespace, id)))
	return filepath.Join(s.opts.State, "s", fmt.Sprintf("%x", hash))
}

// runcDelete kills a container and has runc remove its state.
func (s *Server) runcDelete(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.runc, "--root", s.runcDir(), "delete", "--force", id).CombinedOutput()
	if err != nil {
		// What runc cannot read, it cannot remove either.
		return errors.Join(
			removeTree(filepath.Join(s.runcDir(), id)),
			fmt.Errorf("runc delete: %w: %s", err, strings.TrimSpace(string(out))))
	}
	return nil
}

// endHelpers kills the shim and the runc processes of a container. One that is
// about to start another is killed with it: it looks until there is none.
func (s *Server) endHelpers(id string) error {
	for range 200 {
		all, err := s.helpers()
		if err != nil {
			return err
		}
		maps.DeleteFunc(all, func(_ int, h helper) bool { return h.id != id })
		if len(all) == 0 {
			return nil
		}
		for pid := range all {
			if err := s.killHelper(pid, id); err != nil {
				return err
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("the shim of %s does not die", id)
}

// clearIDMapped removes what shims have left that were killed while they mounted
// a container's file system. No container may be in the making.
func (s *Server) clearIDMapped() error {
	dirs, err := filepath.Glob(filepath.Join(tempMounts(s.opts.State), "ovl-idmapped*"))
	errs := []error{err}
	for _, dir := range dirs {
		errs = append(errs, unmountBelow(dir), removeTree(dir))
	}
	return errors.Join(errs...)
}

// awaitHelpers waits until the processes have ended by which containerd removes
// a container once more after its end, and kills what is there after five
// seconds. No container may be running.
func (s *Server) awaitHelpers() error {
	for range 500 {
		all, err := s.helpers()
		if err != nil || len(all) == 0 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	all, err := s.helpers()
	errs := []error{err}
	for _, h := range all {
		errs = append(errs, s.endHelpers(h.id))
	}
	return errors.Join(errs...)
}
