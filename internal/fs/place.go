package fs

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// place is where system calls find a path: its name seen from an open
// directory. With links followed that is the whole path; without, the directory
// was reached step by step and only the last component is left to look up.
type place struct {
	dir    int // descriptor, owned if links are not followed
	name   string
	path   string // for messages
	follow bool   // the last component may be a link
}

// place finds the directory of the target. The caller has to close the place.
func (t target) place() (place, error) {
	path, err := t.native()
	if err != nil {
		return place{}, err
	}
	if t.follow {
		return pathPlace(path, true), nil
	}
	slash := strings.LastIndexByte(path, '/')
	dir, err := descend(path[:slash], false)
	if err != nil {
		return place{}, err
	}
	name := path[slash+1:]
	if name == "" {
		name = "." // of the root
	}
	return place{dir: dir, name: name, path: path}, nil
}

// pathPlace is a path as it stands; follow says whether it may end in a link.
func pathPlace(path string, follow bool) place {
	return place{dir: unix.AT_FDCWD, name: path, path: path, follow: follow}
}

func (p place) close() {
	if p.dir != unix.AT_FDCWD {
		_ = unix.Close(p.dir) // was never read from or written to
	}
}

// descend opens a directory by its absolute path without passing through a
// link: where one is met the error is ENOTDIR. With create, missing
// directories are made on the way.
func descend(path string, create bool) (int, error) {
	dir, err := openat(unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY, 0)
	for name := range strings.SplitSeq(path, "/") {
		if err == nil && name != "" {
			dir, err = step(dir, name, create)
		}
	}
	if err != nil {
		return 0, &os.PathError{Op: "descend", Path: path, Err: err}
	}
	return dir, nil
}

// step exchanges a directory for one inside it.
func step(dir int, name string, create bool) (int, error) {
	defer unix.Close(dir)
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW
	next, err := openat(dir, name, flags, 0)
	if err != unix.ENOENT || !create {
		return next, err
	}
	if err := mkdirat(dir, name); err != nil && err != unix.EEXIST {
		return 0, err
	}
	return openat(dir, name, flags, 0)
}
