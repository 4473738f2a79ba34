package fs

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxPending is about how many subdirectories of a directory are noted at a
// time.
const maxPending = 1000

// remover empties a tree of directories. No link is followed, whatever is
// swapped meanwhile. Only one descriptor is held however deep the tree is, since
// a hostile one is deeper than there are descriptors; the way back up is
// through "..", and checked.
type remover struct {
	dir   *os.File
	stack []level // down to dir
}

// level is a directory that is being emptied.
type level struct {
	name    string // in the directory above
	id      fileID
	pending []string // subdirectories that are still there
	more    bool     // there may be others
}

// removeTree removes the directory at p and all that is below.
func (p place) removeTree() error {
	dir, top, err := enter(p.dir, p.name)
	if err != nil {
		return err
	}
	r := remover{dir: dir, stack: []level{top}}
	defer func() { r.dir.Close() }()
	for {
		name, err := r.next()
		switch {
		case err != nil:
		case name != "":
			err = r.down(name)
		case len(r.stack) > 1:
			err = r.up()
		default:
			return p.remove(unix.AT_REMOVEDIR)
		}
		if err != nil {
			return err
		}
	}
}

// enter opens a directory in another one.
func enter(parent int, name string) (*os.File, level, error) {
	fd, err := openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, level{}, &os.PathError{Op: "open", Path: name, Err: err}
	}
	dir := os.NewFile(uintptr(fd), name)
	info, err := dir.Stat()
	if err != nil {
		dir.Close()
		return nil, level{}, err
	}
	return dir, level{name: name, id: idOf(info), more: true}, nil
}

// next returns a subdirectory that is left in the current directory, or "" if
// that is empty now.
func (r *remover) next() (name string, err error) {
	at := &r.stack[len(r.stack)-1]
	for len(at.pending) == 0 {
		if !at.more {
			return "", nil
		}
		if at.pending, at.more, err = removeFiles(r.dir); err != nil {
			return "", err
		}
	}
	last := len(at.pending) - 1
	name, at.pending = at.pending[last], at.pending[:last]
	return name, nil
}

func (r *remover) down(name string) error {
	dir, below, err := enter(int(r.dir.Fd()), name)
	if errors.Is(err, unix.ENOENT) { // removed by somebody else
		return nil
	}
	if err != nil {
		return err
	}
	r.dir.Close()
	r.dir, r.stack = dir, append(r.stack, below)
	return nil
}

// up returns to the directory above and removes the emptied one from it.
func (r *remover) up() error {
	last := len(r.stack) - 1
	emptied := r.stack[last].name
	r.stack = r.stack[:last]
	dir, above, err := enter(int(r.dir.Fd()), "..")
	if err != nil {
		return err
	}
	r.dir.Close()
	r.dir = dir
	if above.id != r.stack[last-1].id {
		return &os.PathError{Op: "remove", Path: emptied, Err: unix.ESTALE} // it was moved elsewhere
	}
	err = placeIn(dir, emptied).remove(unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func placeIn(dir *os.File, name string) place {
	return place{dir: int(dir.Fd()), name: name, path: name}
}

// removeFiles removes everything but subdirectories. Those it returns, and
// whether it stopped early.
func removeFiles(dir *os.File) (subdirectories []string, more bool, err error) {
	for {
		names, err := dir.Readdirnames(readBatch)
		for _, name := range names {
			at := placeIn(dir, name)
			err := at.remove(0)
			if err == nil || errors.Is(err, unix.ENOENT) {
				continue
			}
			if st, statErr := at.stat(); statErr != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
				return nil, false, err
			}
			subdirectories = append(subdirectories, name)
		}
		switch {
		case err == io.EOF:
			return subdirectories, false, nil
		case err != nil:
			return nil, false, err
		case len(subdirectories) >= maxPending:
			return subdirectories, true, nil
		}
	}
}
