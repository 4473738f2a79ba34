package containerd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxDepth is how many directories removeTree has open at once. A container can
// nest them deeper than a process may open files.
const maxDepth = 64

// removeTree removes a file or directory that untrusted programs have filled.
// It follows no link and does not go into another file system: a mount in the
// tree is an error. There may be nothing.
func removeTree(path string) error {
	parent, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	defer unix.Close(parent)
	t := treeRemover{top: -1}
	if err := t.remove(parent, filepath.Base(path), 0); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// treeRemover is the removal of one tree.
type treeRemover struct {
	top   int // the tree's uppermost directory
	moved int // how many directories were moved up there
}

// remove removes name in the directory, which has depth directories of the tree
// above it.
func (t *treeRemover) remove(dir int, name string, depth int) error {
	err := unix.Unlinkat(dir, name, 0)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM):
		return fmt.Errorf("%s: %w", name, err)
	}
	if depth >= maxDepth {
		// It is removed with the uppermost directory's other entries.
		t.moved++
		to := ".removed." + strconv.Itoa(t.moved)
		err := unix.Renameat2(dir, name, t.top, to, unix.RENAME_NOREPLACE)
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
	if errors.Is(err, unix.EXDEV) {
		return fmt.Errorf("%s: something is mounted there", name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if depth == 0 {
		t.top = fd
	}
	for {
		err := t.empty(f, depth+1)
		if err != nil {
			return fmt.Errorf("%s/%w", name, err)
		}
		err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// empty removes what is in a directory now. What was moved to the uppermost
// directory meanwhile may be left in it.
func (t *treeRemover) empty(dir *os.File, depth int) error {
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if err := t.remove(int(dir.Fd()), name, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			_, err = dir.Seek(0, io.SeekStart)
			return err
		}
		if err != nil {
			return err
		}
	}
}
