package fs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRemove(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "f=x", "g=x", "d/e/g=x", "d/e/l>../../keep", "d/fifo|", "n/e/", "n/f=x", "keep/x=x",
		"l>keep", "dangling>none", "below/d/f=x", "to>below")
	run(t, dir, []req{
		{"remove", `{"path":"$U/f"}`, ok},
		{"remove", `{"path":"$U/d"}`, ok},
		{"remove", `{"path":"$U/none"}`, ok},
		{"remove", `{"path":"$U/none/x"}`, ok},
		{"remove", `{"path":"$U/none","force":null,"recursive":null,"followSymlinks":null}`, ok},
		{"remove", `{"path":"$U/none","force":false}`, enoent},
		{"remove", `{"path":"$U/none","force":false,"recursive":false}`, enoent},
		{"remove", `{"path":"$U/g/x"}`, enotdir},
		{"remove", `{"path":"$U/g","force":false}`, ok},
		{"remove", `{"path":"$U/n","recursive":false}`, enotempty},
		{"remove", `{"path":"$U/n/e","recursive":false}`, ok},
		{"remove", `{"path":"$U/n/f","recursive":false}`, ok},
		{"remove", `{"path":"$U/n","recursive":false}`, ok},
		{"remove", `{"path":"$U/l"}`, ok},
		{"remove", `{"path":"$U/dangling","recursive":false}`, ok},
		{"remove", `{"path":"$U/to/d"}`, ok},
		{"remove", `{"path":"file:///","recursive":false}`, "-32603 device or resource busy (os error 16)"},
	})
	holds(t, filepath.Join(dir, "keep/x"), "x")
	for _, name := range []string{"f", "g", "d", "n", "l", "dangling", "below/d"} {
		missing(t, filepath.Join(dir, name))
	}
}

// A tree may be deeper than a path is long and than there are descriptors.
func TestRemoveDeep(t *testing.T) {
	dir := tempDir(t)
	deep, err := os.MkdirTemp(dir, "deep")
	check(t, err)
	fd, err := unix.Open(deep, unix.O_PATH|unix.O_CLOEXEC, 0)
	check(t, err)
	for range 1500 {
		check(t, unix.Mkdirat(fd, "a-directory", 0o777))
		below, err := unix.Openat(fd, "a-directory", unix.O_PATH|unix.O_CLOEXEC, 0)
		check(t, err)
		unix.Close(fd)
		fd = below
	}
	unix.Close(fd)
	var old syscall.Rlimit
	check(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	check(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: old.Max}))
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)
	run(t, deep, []req{{"remove", `{"path":"$U"}`, ok}})
	missing(t, deep)
}

// Directories that hold more than is read or noted at a time.
func TestRemoveWide(t *testing.T) {
	dir := tempDir(t)
	for i := range maxPending + 2*readBatch {
		check(t, os.MkdirAll(fmt.Sprintf("%s/w/d%d", dir, i), 0o777))
	}
	for i := range 2 * readBatch {
		build(t, dir, fmt.Sprintf("w/f%d=", i))
	}
	run(t, dir, []req{{"remove", `{"path":"$U/w"}`, ok}})
	missing(t, filepath.Join(dir, "w"))
}

// A directory that is swapped for a link while its tree is removed: the link may
// go, what it points to must not.
func TestRemoveSwaps(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "out/keep=x", "out/d/keep=x")
	f := New(nil)
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		build(t, dir, "tree/a/b/", "tree/a/c/", "tree/z/")
		os.Symlink("../../out", filepath.Join(dir, "tree/a/link"))
		stop := swap(t, filepath.Join(dir, "tree/a/b"), filepath.Join(dir, "tree/a/link"))
		call(t, f, "fs/remove", expand(dir, `{"path":"$U/tree"}`))
		stop()
		check(t, os.RemoveAll(filepath.Join(dir, "tree")))
	}
	holds(t, filepath.Join(dir, "out/keep"), "x")
	holds(t, filepath.Join(dir, "out/d/keep"), "x")
}

// A directory that is moved away while it is emptied leads back to another
// place, where nothing must be removed.
func TestRemoveMovedAway(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "tree/a/b/", "other/b/")
	root, top, err := enter(unix.AT_FDCWD, filepath.Join(dir, "tree"))
	check(t, err)
	r := remover{dir: root, stack: []level{top}}
	defer func() { r.dir.Close() }()
	check(t, r.down("a"))
	check(t, r.down("b"))
	check(t, os.Remove(filepath.Join(dir, "other/b")))
	check(t, os.Rename(filepath.Join(dir, "tree/a/b"), filepath.Join(dir, "other/b")))
	if err := r.up(); !errors.Is(err, unix.ESTALE) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "other/b")); err != nil {
		t.Error(err)
	}
}
