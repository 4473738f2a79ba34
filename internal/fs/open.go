package fs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// stat describes what is at the place, a link itself if links are not followed.
func (p place) stat() (st unix.Stat_t, err error) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if p.follow {
		flags = 0
	}
	err = retry(func() error { return unix.Fstatat(p.dir, p.name, &st, flags) })
	if err != nil {
		err = &os.PathError{Op: "stat", Path: p.path, Err: err}
	}
	return st, err
}

// open opens a regular file, and nothing else. Opening alone can block on a
// fifo, wake its other end or start a device, so the file is looked at before;
// as it can be swapped then, it is opened in a way that does not wait and looked
// at once more.
func (p place) open(flags int, perm uint32) (*os.File, unix.Stat_t, error) {
	st, err := p.stat()
	if err == nil {
		err = p.checkRegular(st.Mode, flags)
	} else if flags&unix.O_CREAT != 0 && errors.Is(err, unix.ENOENT) {
		err = nil
	}
	if err != nil {
		return nil, st, err
	}
	flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	if !p.follow {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := openat(p.dir, p.name, flags, perm)
	if err != nil {
		return nil, st, &os.PathError{Op: "open", Path: p.path, Err: err}
	}
	if err = unix.Fstat(fd, &st); err == nil {
		err = p.checkRegular(st.Mode, flags)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, st, err
	}
	// The file must only be read with ReadAt and written with WriteAt: Read and
	// Write would wait where the kernel says EAGAIN (as /proc/kmsg does).
	return os.NewFile(uintptr(fd), p.path), st, nil
}

func (p place) checkRegular(mode uint32, flags int) error {
	switch kind := mode & unix.S_IFMT; {
	case kind == unix.S_IFREG:
		return nil
	case kind == unix.S_IFLNK:
		return unix.ELOOP
	case kind == unix.S_IFDIR && flags&unix.O_ACCMODE != unix.O_RDONLY:
		return unix.EISDIR
	case !p.follow:
		return proto.Invalid("path is not a regular file")
	}
	return proto.Invalid("path `%s` is not a file", p.path)
}

// remove removes a name; flags is AT_REMOVEDIR for a directory, else 0.
func (p place) remove(flags int) error {
	if err := unlinkat(p.dir, p.name, flags); err != nil {
		return &os.PathError{Op: "remove", Path: p.path, Err: err}
	}
	return nil
}
