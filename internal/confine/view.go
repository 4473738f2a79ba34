package confine

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// view builds what a confined command sees, in the mount namespace of the
// calling thread, which must be its own.
type view struct {
	policy *Policy
	plan
	clones []int // of each step, taken before anything is covered
	blanks int   // file system with what stands in for hidden things
	// devices says that /dev and /proc are the command's own, to be kept as they
	// are.
	devices bool
	root    int // of a new tree, or AT_FDCWD
}

// Names on the file system of stand-ins.
const (
	emptyDir   = "empty"
	deniedDir  = "denied-directory"
	deniedFile = "denied-file"
	emptyFile  = "empty-file"
)

// capture copies what the steps show, before anything is covered.
func (v *view) capture() error {
	for _, s := range v.steps {
		fd := -1
		if s.how != deny && !s.made {
			attrs := uint64(confined)
			if s.how == read {
				attrs = readOnly
			}
			var err error
			if fd, err = cloneAt(s.from, attrs); err != nil {
				return err
			}
		}
		v.clones = append(v.clones, fd)
	}
	return nil
}

// drop lets go of what was captured and not mounted.
func (v *view) drop() {
	for _, fd := range v.clones {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	v.clones = nil
}

// build mounts the view. Whatever it returns, the thread must not be used for
// anything but the confined work after it.
func (v *view) build() (err error) {
	v.root = unix.AT_FDCWD
	if v.policy.shown() {
		err = v.keepRoot()
	} else {
		err = v.newRoot()
	}
	for i, s := range v.steps {
		if err == nil {
			err = v.mount(i, s)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(v.links)) {
		if err == nil && v.root != unix.AT_FDCWD {
			err = v.link(at, v.links[at])
		}
	}
	if err == nil && v.root != unix.AT_FDCWD {
		err = v.enterRoot()
	}
	return err
}

// keepRoot restricts everything that is mounted.
func (v *view) keepRoot() error {
	attrs := uint64(readOnly)
	if v.policy.paths["/"] == write {
		attrs = confined
	}
	root, err := look("/")
	if err != nil {
		return err
	}
	defer unix.Close(root)
	if err := restrict(root, unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attrs, 0); err != nil {
		return err
	}
	if !v.devices {
		return nil
	}
	for at, flags := range map[string]uint{"/dev": unix.AT_RECURSIVE, "/proc": 0} {
		fd, err := look(at)
		if err != nil {
			return err
		}
		err = restrict(fd, unix.AT_EMPTY_PATH|flags, 0, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV)
		_ = unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// newRoot begins an empty tree.
func (v *view) newRoot() error {
	root, err := tmpfs("0755")
	if err != nil {
		return err
	}
	// It has to be mounted somewhere before something can be mounted on it. On /
	// it is in nobody's way: paths still begin below it.
	if err := unix.MoveMount(root, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount new root: %w", err)
	}
	v.root = root
	if !v.devices {
		return nil
	}
	for _, name := range []string{"dev", "proc"} {
		if err := makePoint(root, name, true); err != nil {
			return err
		}
		tree, err := unix.OpenTree(unix.AT_FDCWD, "/"+name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return fmt.Errorf("copy /%s: %w", name, err)
		}
		err = unix.MoveMount(tree, "", root, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
		_ = unix.Close(tree)
		if err != nil {
			return fmt.Errorf("mount /%s: %w", name, err)
		}
	}
	return nil
}

// enterRoot makes the new tree the only one.
func (v *view) enterRoot() error {
	defer unix.Close(v.root)
	if err := restrict(v.root, unix.AT_EMPTY_PATH, readOnly, 0); err != nil {
		return err
	}
	if err := unix.Fchdir(v.root); err != nil {
		return fmt.Errorf("enter new root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave old root: %w", err)
	}
	return nil
}

func (v *view) mount(i int, s step) error {
	source, err := v.source(i, s)
	if err != nil {
		return err
	}
	if v.root != unix.AT_FDCWD {
		if err := v.point(s); err != nil {
			_ = unix.Close(source)
			return err
		}
	}
	on, err := v.look(s.at)
	if err != nil {
		_ = unix.Close(source)
		return err
	}
	if err := attach(source, on); err != nil {
		return fmt.Errorf("%s: %w", s.at, err)
	}
	return nil
}

// look opens a path in the tree that is built.
func (v *view) look(at string) (int, error) {
	if v.root == unix.AT_FDCWD {
		return look(at)
	}
	fd, err := unix.Openat2(v.root, strings.TrimPrefix(at, "/"), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_IN_ROOT,
	})
	if err != nil {
		return -1, fmt.Errorf("find %s: %w", at, err)
	}
	return fd, nil
}

// point makes a place to mount on, if it belongs to the new tree itself.
func (v *view) point(s step) error {
	if fd, err := v.look(s.at); err == nil {
		_ = unix.Close(fd)
		return nil
	}
	dir, err := descend(v.root, path.Dir(s.at))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return makePoint(dir, path.Base(s.at), s.dir)
}

// link makes a link in the new tree, where there is not something already.
func (v *view) link(at, to string) error {
	dir, err := descend(v.root, path.Dir(at))
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return nil // it is part of what is shown
	} else if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := unix.Symlinkat(to, dir, path.Base(at)); err != nil && err != unix.EEXIST {
		return fmt.Errorf("link %s: %w", at, err)
	}
	return nil
}

// descend makes the directories of a path below an open one, without leaving its
// file system or following links, and opens the last.
func descend(root int, at string) (int, error) {
	dir, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0)
	for name := range strings.SplitSeq(at, "/") {
		if name == "" || err != nil {
			continue
		}
		if err = unix.Mkdirat(dir, name, 0o755); err == nil || err == unix.EEXIST {
			var next int
			next, err = unix.Openat2(dir, name, &unix.OpenHow{
				Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW,
				Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV | unix.RESOLVE_BENEATH,
			})
			_ = unix.Close(dir)
			dir = next
		} else {
			_ = unix.Close(dir)
		}
	}
	if err != nil {
		return -1, fmt.Errorf("make %s: %w", at, err)
	}
	return dir, nil
}
