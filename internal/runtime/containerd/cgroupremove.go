package containerd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// remove kills what is in the container's cgroup and removes it from every
// hierarchy. It may be gone already.
func (t cgroupTree) remove(id string) error {
	var errs []error
	for _, root := range t.roots {
		if err := removeCgroup(root + t.path(id)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removeParent removes the parents that are empty.
func (t cgroupTree) removeParent() {
	for _, root := range t.roots {
		_ = unix.Rmdir(root + t.parent)
	}
}

// removeCgroup ends a cgroup with all below it, within two seconds.
func removeCgroup(dir string) error {
	var err error
	for wait := time.Millisecond; wait < time.Second; wait *= 2 {
		if err = tryRemoveCgroup(dir); err == nil {
			return nil
		}
		time.Sleep(wait)
	}
	return fmt.Errorf("remove cgroup %s: %w", dir, err)
}

func tryRemoveCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := tryRemoveCgroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	// A frozen process would not die.
	_ = os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("THAWED"), 0)
	pids, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	for _, pid := range strings.Fields(string(pids)) {
		if n, err := strconv.Atoi(pid); err == nil && n > 1 {
			_ = unix.Kill(n, unix.SIGKILL)
		}
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}
