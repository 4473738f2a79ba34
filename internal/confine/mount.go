package confine

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// look opens a path as it is, without passing through any link, so that nobody
// can lead a mount elsewhere.
func look(at string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, at, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return -1, fmt.Errorf("find %s: %w", at, err)
	}
	return fd, nil
}

// clone makes a detached copy of what is mounted at an open file or directory,
// with all below, that is restricted by attrs.
func clone(dir int, name string, attrs uint64) (int, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE)
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	fd, err := unix.OpenTree(dir, name, flags)
	if err != nil {
		return -1, fmt.Errorf("copy mount: %w", err)
	}
	if err := restrict(fd, unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attrs, 0); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// cloneAt is clone by path.
func cloneAt(at string, attrs uint64) (int, error) {
	fd, err := look(at)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	return clone(fd, "", attrs)
}

func restrict(fd int, flags uint, set, unset uint64) error {
	if err := unix.MountSetattr(fd, "", flags, &unix.MountAttr{Attr_set: set, Attr_clr: unset}); err != nil {
		return fmt.Errorf("restrict mount: %w", err)
	}
	return nil
}

// attach puts a detached mount on an open file or directory and closes both.
func attach(mount, on int) error {
	err := unix.MoveMount(mount, "", on, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	_ = unix.Close(mount)
	_ = unix.Close(on)
	if err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

// attachAt is attach by path.
func attachAt(mount int, at string) error {
	on, err := look(at)
	if err != nil {
		_ = unix.Close(mount)
		return err
	}
	if err := attach(mount, on); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// fresh makes a detached file system.
func fresh(kind string, attrs int, options ...string) (int, error) {
	ctx, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("new %s: %w", kind, err)
	}
	defer unix.Close(ctx)
	for _, option := range options {
		key, value, _ := strings.Cut(option, "=")
		if value == "" {
			err = unix.FsconfigSetFlag(ctx, key)
		} else {
			err = unix.FsconfigSetString(ctx, key, value)
		}
		if err != nil {
			return -1, fmt.Errorf("new %s: %s: %w", kind, option, err)
		}
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return -1, fmt.Errorf("new %s: %w", kind, err)
	}
	fd, err := unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return -1, fmt.Errorf("new %s: %w", kind, err)
	}
	return fd, nil
}

// Attributes of everything that a confined command sees, and of what it must
// not change.
const (
	confined = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readOnly = confined | unix.MOUNT_ATTR_RDONLY
)

// tmpfs makes a small file system for things that stand in for others.
func tmpfs(mode string) (int, error) {
	return fresh("tmpfs", confined, "mode="+mode, "size=256k", "nr_inodes=16k")
}

// makeFile makes an empty file without opening it: a child that is forked
// meanwhile would hold it open for writing, and its file system would be busy.
func makeFile(dir int, name string, mode uint32) error {
	return unix.Mknodat(dir, name, unix.S_IFREG|mode, 0)
}

// makePoint makes an empty directory or file below an open directory, and the
// directories above it.
func makePoint(root int, at string, dir bool) error {
	at = strings.TrimPrefix(at, "/")
	for i := range len(at) {
		if at[i] == '/' {
			if err := unix.Mkdirat(root, at[:i], 0o755); err != nil && err != unix.EEXIST {
				return fmt.Errorf("make %s: %w", at[:i], err)
			}
		}
	}
	var err error
	if dir {
		err = unix.Mkdirat(root, at, 0o755)
	} else {
		err = makeFile(root, at, 0o444)
	}
	if err != nil && err != unix.EEXIST {
		return fmt.Errorf("make %s: %w", filepath.Base(at), err)
	}
	return nil
}
