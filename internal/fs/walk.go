package fs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// maxWalkSize is about where a walk's answer is cut, in bytes.
const maxWalkSize = 4 << 20

// walker is a walk under way.
type walker struct {
	walkOptions
	root    proto.URI
	visitor Visitor // takes what is found in place of the result, if not nil

	queue       []walkDir // directories listed already and not read yet
	directories uint64    // how many have been in the queue
	looked      uint64    // entries looked at
	size        int       // what counts towards maxWalkSize
	entered     map[fileID]bool
	entries     []byte // items of the JSON arrays
	errors      []byte
	truncated   bool
}

type walkDir struct {
	path  string
	depth uint64 // the root's is 0
}

// errCut ends a walk early.
var errCut = errors.New("walk is cut")

// walk lists what is below root, breadth first. Only a root that is not there is
// an error; what fails later is part of the result.
func walk(root proto.URI, options walkOptions) (proto.Result, error) {
	w := walker{walkOptions: options, root: root}
	if err := w.run(); err != nil {
		return nil, err
	}
	return w.result(), nil
}

func (w *walker) run() error {
	root, err := w.root.Native()
	if err != nil {
		return err
	}
	w.entered = map[fileID]bool{}
	info, err := os.Stat(root)
	if err != nil {
		return err
	}
	if !w.follow {
		if info, err = os.Lstat(root); err != nil {
			return err
		}
	}
	if info.IsDir() {
		w.enqueue(walkDir{path: root}, info)
	}
	for len(w.queue) > 0 {
		next := w.queue[0]
		w.queue = w.queue[1:]
		if w.read(next) != nil {
			w.truncated = true
			break
		}
	}
	return nil
}

// enqueue has a directory read later, unless it was met before or there are too
// many.
func (w *walker) enqueue(dir walkDir, info os.FileInfo) {
	if w.follow { // without links there is one way to each directory only
		id := idOf(info)
		if w.entered[id] {
			return
		}
		w.entered[id] = true
	}
	if w.directories == w.maxDirectories {
		w.truncated = true
		return
	}
	w.directories++
	w.queue = append(w.queue, dir)
}

// read lists one directory. It fails with errCut if there is no room for more.
func (w *walker) read(dir walkDir) error {
	entries, err := w.sorted(dir.path)
	if err != nil {
		return w.addError(dir.path, err)
	}
	for _, entry := range entries {
		if w.looked == w.maxEntries {
			return errCut
		}
		w.looked++
		if err := w.visit(dir, entry); err != nil {
			return err
		}
	}
	return nil
}

// sorted returns the first entries of a directory by name, one more than may
// still be looked at. A directory can hold far more than fit into memory.
func (w *walker) sorted(path string) ([]os.DirEntry, error) {
	flags := unix.O_NOFOLLOW
	if w.follow {
		flags = 0
	}
	dir, err := openDirectory(path, flags)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return firstEntries(dir, int(w.maxEntries-w.looked)+1)
}

func (w *walker) visit(dir walkDir, entry os.DirEntry) error {
	name := entry.Name()
	path := filepath.Join(dir.path, name)
	if !utf8.ValidString(name) {
		return w.addError(filepath.Join(dir.path, string([]rune(name))), unix.ENOENT)
	}
	isDir := entry.IsDir()
	var info os.FileInfo // needed to recognize a directory when links are followed
	if w.follow && (isDir || entry.Type() == os.ModeSymlink) {
		var err error
		if info, err = os.Stat(path); err != nil {
			return nil
		}
		isDir = info.IsDir()
	}
	switch {
	case isDir:
		if err := w.addEntry(path, "directory"); err != nil {
			return err
		}
		if dir.depth < w.maxDepth && !(w.pruneHidden && strings.HasPrefix(name, ".")) {
			w.enqueue(walkDir{path: path, depth: dir.depth + 1}, info)
		}
	case entry.Type().IsRegular():
		return w.addEntry(path, "file")
	}
	return nil
}
