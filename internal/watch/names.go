package watch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// maxDirectories is how many directories a watch may need, those on the way to
// a path included.
const maxDirectories = 64

const (
	// named is what can happen to a name in a directory.
	named = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVE | unix.IN_ATTRIB
	// itself is what can happen to a directory that makes its names go away.
	itself = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	// gone comes without being asked for.
	gone = unix.IN_UNMOUNT | unix.IN_IGNORED | unix.IN_Q_OVERFLOW
)

// names are the names that an inotify descriptor is to tell about.
type names struct {
	fd          int
	directories map[string]int32   // descriptor of the watch, by path
	of          map[int32][]string // by that descriptor
}

func newNames(fd int) *names {
	return &names{fd: fd, directories: map[string]int32{}, of: map[int32][]string{}}
}

// add watches every name on the way to a path, as far as they are there. It is
// false if the path is there or not there against expectation, passes through a
// link, or cannot be watched.
//
// A directory is watched before the name in it is looked at, so that nothing is
// missed: what happens after the look is in the queue already. If a directory is
// exchanged before the next is reached through it, that is in the queue too.
func (n *names) add(path string, present bool) bool {
	if path == "/" {
		return present
	}
	for at := 0; ; {
		next := strings.IndexByte(path[at+1:], '/')
		last := next < 0
		end := len(path)
		if !last {
			end = at + 1 + next
		}
		if !n.watch(path[:max(at, 1)], path[at+1:end], present && last) {
			return false
		}
		var st unix.Stat_t
		err := lstat(path[:end], &st)
		switch kind := st.Mode & unix.S_IFMT; {
		case errors.Is(err, unix.ENOENT):
			return !present
		case err != nil || kind == unix.S_IFLNK:
			return false
		case last:
			return present
		case kind != unix.S_IFDIR:
			return false
		}
		at = end
	}
}

func lstat(path string, st *unix.Stat_t) error {
	for {
		if err := unix.Lstat(path, st); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// watch has the descriptor tell about a name in a directory, and about what is
// written to that file if its contents count.
func (n *names) watch(dir, name string, contents bool) bool {
	mask := uint32(named | itself | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW | unix.IN_MASK_ADD)
	if contents {
		mask |= unix.IN_MODIFY
	}
	wd, known := n.directories[dir]
	if !known && len(n.directories) == maxDirectories {
		return false
	}
	if !known || contents {
		added, err := unix.InotifyAddWatch(n.fd, dir, mask)
		if err != nil {
			return false
		}
		wd = int32(added)
		n.directories[dir] = wd
	}
	n.of[wd] = append(n.of[wd], name)
	return true
}

// matches says whether one of the events in a buffer concerns the watch. If
// events were lost, it may have been one of them.
func (n *names) matches(events []byte) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(events))
		mask := binary.NativeEndian.Uint32(events[4:])
		size := int(binary.NativeEndian.Uint32(events[12:]))
		events = events[unix.SizeofInotifyEvent:]
		name, _, _ := bytes.Cut(events[:size], []byte{0})
		events = events[size:]
		if mask&(itself|gone) != 0 || n.has(wd, name) {
			return true
		}
	}
	return false
}

func (n *names) has(wd int32, name []byte) bool {
	for _, of := range n.of[wd] {
		if string(name) == of {
			return true
		}
	}
	return false
}
