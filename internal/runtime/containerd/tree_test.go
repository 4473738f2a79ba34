package containerd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/testroot"
)

func TestRemoveTree(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	tree := filepath.Join(dir, "tree")
	for _, d := range []string{outside, filepath.Join(tree, "a/b")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "file"), nil, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.Symlink(outside, filepath.Join(tree, "link")),
		os.Symlink(outside, filepath.Join(tree, "a/b/link")),
		unix.Mkfifo(filepath.Join(tree, "a/fifo"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	// Deeper than files can be open, and than a path can be long.
	deep, err := unix.Open(tree, unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 1500 {
		if err := unix.Mkdirat(deep, "dddd", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(deep, "dddd", unix.O_DIRECTORY, 0)
		unix.Close(deep)
		if deep = next; err != nil {
			t.Fatal(err)
		}
	}
	unix.Close(deep)

	if err := removeTree(tree); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(tree); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(outside, "file")); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	if err := removeTree(tree); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if err := removeTree(filepath.Join(tree, "no/such")); err != nil {
		t.Errorf("without a parent: %v", err)
	}
}

func TestRemoveTreeStopsAtMounts(t *testing.T) {
	testroot.Need(t)
	dir := t.TempDir()
	at := filepath.Join(dir, "tree/mount")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(at, unix.MNT_DETACH)
	if err := os.WriteFile(filepath.Join(at, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := removeTree(filepath.Join(dir, "tree"))
	if err == nil || !strings.Contains(err.Error(), "something is mounted there") {
		t.Errorf("it says %v", err)
	}
	if _, err := os.Lstat(filepath.Join(at, "file")); err != nil {
		t.Errorf("a file of another file system is gone: %v", err)
	}
}
