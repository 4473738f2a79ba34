package confine

import (
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// markers are the empty directories and files that stand in for what a confined
// command must not make. A mount needs something to be on; it is there, for
// everybody to see, as long as commands need it.
//
// Making directories is slow, and the next command is likely to need the same:
// markers that nobody uses are removed a little later, or as soon as somebody
// could see them.
type markers struct {
	unused atomic.Int32 // how many are held that nobody uses

	mu    sync.Mutex // guards held, timer and the number of users of each
	held  map[string]*marker
	timer *time.Timer
}

// linger is how long unused markers stay at most.
const linger = time.Second

type marker struct {
	path  string
	dir   bool
	inode [2]uint64 // device and number, to remove nothing else
	users int
}

// hold makes a marker where nothing is, or shares the one that is there. It
// returns nil if something else is there, or nobody could make anything. Other
// reasons are errors.
func (ms *markers) hold(path string, dir bool, uid, gid int) (*marker, error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m := ms.held[path]; m != nil && m.there() {
		if m.users++; m.users == 1 {
			ms.unused.Add(-1)
		}
		return m, nil
	}
	m := &marker{path: path, dir: dir, users: 1}
	if made, err := m.make(uid, gid); !made {
		return nil, err
	}
	if ms.held == nil {
		ms.held = map[string]*marker{}
	}
	if old := ms.held[path]; old != nil && old.users == 0 {
		ms.unused.Add(-1)
	}
	ms.held[path] = m
	return m, nil
}

// stands tells whether a marker is what is at a path.
func (ms *markers) stands(path string) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.held[path]
	var st unix.Stat_t
	return m != nil && unix.Lstat(path, &st) == nil && m.inode == [2]uint64{st.Dev, st.Ino}
}

// release gives back what hold returned.
func (ms *markers) release(list []*marker) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range list {
		if m.users--; m.users > 0 {
			continue
		}
		if ms.held[m.path] != m { // something else has taken its place
			continue
		}
		ms.unused.Add(1)
	}
	if ms.unused.Load() > 0 && ms.timer == nil {
		ms.timer = time.AfterFunc(linger, func() {
			ms.mu.Lock()
			ms.timer = nil
			ms.mu.Unlock()
			ms.sweep()
		})
	}
}

// sweep removes what nobody uses.
func (ms *markers) sweep() {
	if ms.unused.Load() == 0 {
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	paths := slices.Sorted(maps.Keys(ms.held))
	for _, path := range slices.Backward(paths) { // what is inside first
		if m := ms.held[path]; m.users == 0 {
			delete(ms.held, path)
			ms.unused.Add(-1)
			m.remove()
		}
	}
}

// parent opens the directory that the marker is in.
func (m *marker) parent() (int, string, error) {
	fd, err := look(filepath.Dir(m.path))
	return fd, filepath.Base(m.path), err
}

// make makes the marker, or takes over one that was left behind.
func (m *marker) make(uid, gid int) (bool, error) {
	dir, name, err := m.parent()
	if err != nil {
		return false, errVanished // it was there just now
	}
	defer unix.Close(dir)
	flags := unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	made := true
	if m.dir {
		flags |= unix.O_DIRECTORY
		err = unix.Mkdirat(dir, name, 0o755)
	} else {
		var fd int
		if fd, err = unix.Openat(dir, name, flags|unix.O_CREAT|unix.O_EXCL, 0o600); err == nil {
			_ = unix.Close(fd)
		}
	}
	if err == unix.EEXIST {
		made, err = false, nil
	}
	switch err {
	case nil:
	case unix.EROFS:
		return false, nil
	default:
		return false, err
	}
	fd, err := unix.Openat(dir, name, flags, 0)
	if err != nil && !made {
		return false, nil // something else than a marker
	} else if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if !made && (!abandoned(fd) || !empty(fd)) {
		return false, nil
	}
	if err := unix.Fstat(fd, &st); err != nil {
		return false, err
	}
	sign(fd)
	if made && uid >= 0 {
		_ = unix.Fchown(fd, uid, gid) // it is in the way of nobody either way
	}
	m.inode = [2]uint64{st.Dev, st.Ino}
	return true, nil
}

// empty tells whether nothing is in an open directory or file.
func empty(fd int) bool {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return err == nil && st.Size == 0
	}
	var buf [4096]byte
	n, err := unix.Getdents(fd, buf[:])
	_, _, names := unix.ParseDirent(buf[:max(n, 0)], -1, nil)
	return err == nil && len(names) == 0
}

// there tells whether the name still stands for the marker.
func (m *marker) there() bool {
	dir, name, err := m.parent()
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	return m.is(dir, name)
}

func (m *marker) is(dir int, name string) bool {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || m.inode != [2]uint64{st.Dev, st.Ino} {
		return false
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return empty(fd) // once something is in it, it is the project's own
}

func (m *marker) remove() {
	dir, name, err := m.parent()
	if err != nil {
		return
	}
	defer unix.Close(dir)
	if !m.is(dir, name) {
		return
	}
	flags := 0
	if m.dir {
		flags = unix.AT_REMOVEDIR // which leaves what is not empty
	}
	_ = unix.Unlinkat(dir, name, flags)
}
