package fs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCopy(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "a=A", "c=longer text", "d/s/f=F", "d/l>s/f", "d/ld>s", "d/fifo|", "old/keep=K", "old/s/f=old",
		"e/", "l>target-name", "la>a", "ld>d", "fifo|", "dangling>made")
	const (
		itself  = "-32600 fs/copy cannot copy a directory to itself or one of its descendants"
		special = "-32600 fs/copy only supports regular files, directories, and symlinks"
		tree    = "-32600 fs/copy requires recursive: true when sourcePath is a directory"
	)
	cp := func(src, dst string, recursive bool) string {
		return fmt.Sprintf(`{"sourcePath":"$U/%s","destinationPath":"$U/%s","recursive":%v}`, src, dst, recursive)
	}
	run(t, dir, []req{
		{"copy", cp("a", "b", false), ok},
		{"copy", cp("a", "c", true), ok},
		{"copy", cp("a", "dangling", false), ok},
		{"copy", cp("none", "x", false), enoent},
		{"copy", cp("a", "no/x", false), enoent},
		{"copy", cp("a", "d", false), eisdir},
		{"copy", cp("a", "b/x", false), enotdir},
		{"copy", cp("a", "fifo", false), "-32600 path `$D/fifo` is not a file"},
		{"copy", cp("d", "a", true), eexist},
		{"copy", cp("d", "x", false), tree},
		{"copy", cp("d", "new", true), ok},
		{"copy", cp("d/s", "made/on/the/way", true), enotdir}, // "made" is a file by now
		{"copy", cp("d/s", "m/on/the/way", true), ok},
		{"copy", cp("d/s", "old/s", true), ok},
		{"copy", cp("d", "old", true), ok},
		{"copy", cp("d", "old", true), eexist}, // the links are there now
		{"copy", cp("d", "d", true), itself},
		{"copy", cp("d", "d/in", true), itself},
		{"copy", cp("d", "d/in/not/made", true), itself},
		{"copy", cp("d", "ld/in", true), itself},
		{"copy", cp("d", "d/ld/in", true), itself},
		{"copy", cp("d", "../"+filepath.Base(dir)+"/d/in", true), itself},
		{"copy", cp("", "e", true), itself},
		{"copy", cp("d", "dd", true), ok}, // begins like d, is not in it
		{"copy", cp("e", "", true), ok},
		{"copy", cp("l", "l2", false), ok},
		{"copy", cp("l", "l2", false), eexist},
		{"copy", cp("ld", "ld2", true), ok},
		{"copy", cp("fifo", "x", false), special},
		{"copy", `{"sourcePath":"file:///dev/null","destinationPath":"$U/x","recursive":true}`, special},
		{"copy", `{"sourcePath":"$U/a","destinationPath":"file:///D:/x","recursive":true}`, "-32600 'file:///D:/x' is invalid on 'linux'"},
		{"copy", `{"sourcePath":"file:///proc/version","destinationPath":"$U/version","recursive":false}`, ok},
	})
	for name, want := range map[string]string{"b": "A", "c": "A", "made": "A", "a": "A", "new/s/f": "F",
		"m/on/the/way/f": "F", "old/s/f": "F", "old/keep": "K", "dd/s/f": "F"} {
		holds(t, filepath.Join(dir, name), want)
	}
	for name, want := range map[string]string{"l2": "target-name", "ld2": "d", "new/l": "s/f", "new/ld": "s", "old/l": "s/f"} {
		if got, err := os.Readlink(filepath.Join(dir, name)); got != want {
			t.Errorf("%s links to %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"x", "new/fifo", "d/in", "d/s/in", "e/e"} {
		missing(t, filepath.Join(dir, name))
	}
	if version, err := os.ReadFile("/proc/version"); err == nil {
		holds(t, filepath.Join(dir, "version"), string(version))
	}
}

func TestCopyMode(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "a=A", "old=O", "s=S", "d/x=X")
	for name, mode := range map[string]os.FileMode{"a": 0o640, "old": 0o600, "s": 0o755 | os.ModeSetuid, "d/x": 0o467} {
		check(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	run(t, dir, []req{
		{"copy", `{"sourcePath":"$U/a","destinationPath":"$U/b","recursive":false}`, ok},
		{"copy", `{"sourcePath":"$U/a","destinationPath":"$U/old","recursive":false}`, ok},
		{"copy", `{"sourcePath":"$U/s","destinationPath":"$U/s2","recursive":false}`, ok},
		{"copy", `{"sourcePath":"$U/d","destinationPath":"$U/e","recursive":true}`, ok},
	})
	for name, want := range map[string]os.FileMode{"b": 0o640, "old": 0o640, "s2": 0o755, "e/x": 0o467} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

// A file copied onto itself is not lost, whatever its other name is.
func TestCopyOntoItself(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "a=A", "l>a")
	check(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "hard")))
	run(t, dir, []req{
		{"copy", `{"sourcePath":"$U/a","destinationPath":"$U/a","recursive":false}`, ok},
		{"copy", `{"sourcePath":"$U/a","destinationPath":"$U/l","recursive":false}`, ok},
		{"copy", `{"sourcePath":"$U/a","destinationPath":"$U/hard","recursive":false}`, ok},
	})
	holds(t, filepath.Join(dir, "a"), "A")
}

// Holes cost neither time nor space.
func TestCopySparse(t *testing.T) {
	dir := tempDir(t)
	src, dst := filepath.Join(dir, "sparse"), filepath.Join(dir, "copy")
	file, err := os.OpenFile(src, os.O_RDWR|os.O_CREATE, 0o666)
	check(t, err)
	defer file.Close()
	const size = 1 << 40
	data := bytes.Repeat([]byte("data"), 1<<18) // four buffers' worth
	for _, off := range []int64{0, 3 << 30, 1 << 39} {
		if _, err := file.WriteAt(data, off); err != nil {
			t.Skip("no room for holes here: ", err)
		}
	}
	check(t, file.Truncate(size))
	run(t, dir, []req{{"copy", `{"sourcePath":"$U/sparse","destinationPath":"$U/copy","recursive":false}`, ok}})
	info, err := os.Stat(dst)
	check(t, err)
	if blocks := info.Sys().(*syscall.Stat_t).Blocks; info.Size() != size || blocks*512 > 64<<20 {
		t.Errorf("the copy has %d bytes in %d blocks", info.Size(), blocks)
	}
	copied, err := os.Open(dst)
	check(t, err)
	defer copied.Close()
	got := make([]byte, len(data))
	for _, off := range []int64{0, 3 << 30, 1 << 39} {
		if _, err := copied.ReadAt(got, off); err != nil || !bytes.Equal(got, data) {
			t.Errorf("other data at %d, %v", off, err)
		}
	}
}

// A tree below itself by way of a link in the destination ends where paths do.
func TestCopyEndless(t *testing.T) {
	dir := tempDir(t)
	long := strings.Repeat("n", 200)
	build(t, dir, "d/s/"+long+"/f=x", "dst/s>../d/s/"+long)
	run(t, dir, []req{{"copy", `{"sourcePath":"$U/d","destinationPath":"$U/dst","recursive":true}`, enametoolong}})
}

// A source that is swapped for a link to a directory is not followed.
func TestCopySwaps(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "out/secret=x", "tree/d/f=x", "tree/l>../out")
	defer swap(t, filepath.Join(dir, "tree/d"), filepath.Join(dir, "tree/l"))()
	f := New(nil)
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		call(t, f, "fs/copy", expand(dir, `{"sourcePath":"$U/tree","destinationPath":"$U/copy","recursive":true}`))
		for _, name := range []string{"d", "l"} {
			if info, err := os.Lstat(filepath.Join(dir, "copy", name)); err == nil && info.IsDir() {
				missing(t, filepath.Join(dir, "copy", name, "secret"))
			}
		}
		check(t, os.RemoveAll(filepath.Join(dir, "copy")))
	}
}
