package fs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var nofollowTree = []string{"d/s/", "d/x=X", "f=F", "lf>f", "ld>d", "dangling>none", "fifo|"}

func TestNoFollow(t *testing.T) {
	const (
		notRegular = "-32600 path is not a regular file"
		isLink     = "-32600 path contains a symbolic link"
		recursive  = "-32603 recursive no-follow removal is unsupported"
	)
	dir := tempDir(t)
	build(t, dir, nofollowTree...)
	const no = `,"followSymlinks":false`
	run(t, dir, []req{
		{"readFile", `{"path":"$U/f"` + no + `}`, `{"dataBase64":b64(F)}`},
		{"readFile", `{"path":"$U/d/x"` + no + `}`, `{"dataBase64":b64(X)}`},
		{"readFile", `{"path":"$U/lf"` + no + `}`, eloop},
		{"readFile", `{"path":"$U/ld"` + no + `}`, eloop},
		{"readFile", `{"path":"$U/dangling"` + no + `}`, eloop},
		{"readFile", `{"path":"$U/ld/x"` + no + `}`, enotdir},
		{"readFile", `{"path":"$U/f/x"` + no + `}`, enotdir},
		{"readFile", `{"path":"$U/d"` + no + `}`, notRegular},
		{"readFile", `{"path":"$U/fifo"` + no + `}`, notRegular},
		{"readFile", `{"path":"file:///dev/null"` + no + `}`, notRegular},
		{"readFile", `{"path":"file:///"` + no + `}`, notRegular},
		{"readFile", `{"path":"$U/none"` + no + `}`, enoent},
		{"readFile", `{"path":"$U/none/x"` + no + `}`, enoent},

		{"writeFile", `{"path":"$U/new","dataBase64":b64(n)` + no + `}`, ok},
		{"writeFile", `{"path":"$U/new","dataBase64":b64(nn)` + no + `}`, ok},
		{"writeFile", `{"path":"$U/lf","dataBase64":b64(n)` + no + `}`, eloop},
		{"writeFile", `{"path":"$U/dangling","dataBase64":b64(n)` + no + `}`, eloop},
		{"writeFile", `{"path":"$U/ld/new","dataBase64":b64(n)` + no + `}`, enotdir},
		{"writeFile", `{"path":"$U/d","dataBase64":b64(n)` + no + `}`, eisdir},
		{"writeFile", `{"path":"$U/fifo","dataBase64":b64(n)` + no + `}`, notRegular},
		{"writeFile", `{"path":"$U/no/x","dataBase64":b64(n)` + no + `}`, enoent},

		{"createDirectory", `{"path":"$U/n/m"` + no + `}`, ok},
		{"createDirectory", `{"path":"$U/n/m"` + no + `}`, ok},
		{"createDirectory", `{"path":"file:///"` + no + `}`, ok},
		{"createDirectory", `{"path":"$U/n/m","recursive":false` + no + `}`, eexist},
		{"createDirectory", `{"path":"$U/n/o","recursive":false` + no + `}`, ok},
		{"createDirectory", `{"path":"$U/q/m","recursive":false` + no + `}`, enoent},
		{"createDirectory", `{"path":"$U/ld/new"` + no + `}`, enotdir},
		{"createDirectory", `{"path":"$U/ld/new","recursive":false` + no + `}`, enotdir},
		{"createDirectory", `{"path":"$U/ld"` + no + `}`, enotdir},
		{"createDirectory", `{"path":"$U/dangling"` + no + `}`, enotdir},
		{"createDirectory", `{"path":"$U/f"` + no + `}`, enotdir},
		{"createDirectory", `{"path":"$U/f/x"` + no + `}`, enotdir},

		{"getMetadata", `{"path":"$U/lf"` + no + `}`, isLink},
		{"getMetadata", `{"path":"$U/dangling"` + no + `}`, isLink},
		{"getMetadata", `{"path":"$U/ld/x"` + no + `}`, enotdir},
		{"getMetadata", `{"path":"$U/none"` + no + `}`, enoent},

		{"remove", `{"path":"$U/f"` + no + `}`, recursive},
		{"remove", `{"path":"$U/f","recursive":null` + no + `}`, recursive},
		{"remove", `{"path":"$U/f","recursive":false` + no + `}`, ok},
		{"remove", `{"path":"$U/f","recursive":false` + no + `}`, ok},
		{"remove", `{"path":"$U/no/f","recursive":false` + no + `}`, ok},
		{"remove", `{"path":"$U/f","recursive":false,"force":false` + no + `}`, enoent},
		{"remove", `{"path":"$U/lf","recursive":false` + no + `}`, isLink},
		{"remove", `{"path":"$U/dangling","recursive":false` + no + `}`, isLink},
		{"remove", `{"path":"$U/ld/x","recursive":false` + no + `}`, enotdir},
		{"remove", `{"path":"$U/d","recursive":false` + no + `}`, enotempty},
		{"remove", `{"path":"$U/d/s","recursive":false` + no + `}`, ok},
		{"remove", `{"path":"$U/fifo","recursive":false` + no + `}`, ok},
	})
	holds(t, filepath.Join(dir, "new"), "nn")
	holds(t, filepath.Join(dir, "d/x"), "X")
	missing(t, filepath.Join(dir, "none"))
	missing(t, filepath.Join(dir, "d/new"))
	if m := describe(t, dir, `{"path":"$U/d"`+no+`}`); !m.IsDirectory || m.IsSymlink {
		t.Errorf("directory: %+v", m)
	}
	if m := describe(t, dir, `{"path":"file:///"`+no+`}`); !m.IsDirectory {
		t.Errorf("root: %+v", m)
	}
}

// Without links followed a path may be longer than the system takes at once.
func TestNoFollowLongPath(t *testing.T) {
	dir := tempDir(t)
	long := strings.Repeat("/n", 3000)
	run(t, dir, []req{
		{"createDirectory", `{"path":"$U` + long + `","followSymlinks":false}`, ok},
		{"writeFile", `{"path":"$U` + long + `/f","dataBase64":b64(deep),"followSymlinks":false}`, ok},
		{"readFile", `{"path":"$U` + long + `/f","followSymlinks":false}`, `{"dataBase64":b64(deep)}`},
		{"remove", `{"path":"$U/n"}`, ok},
	})
	missing(t, filepath.Join(dir, "n"))
}

// However a directory on the way and the file itself are swapped for links,
// nothing on the other side of the links is reached.
func TestNoFollowSwaps(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "in/d/f=inside", "in/link>../out", "out/f=outside", "out/keep=", "file=inside", "to>out/f")
	defer swap(t, filepath.Join(dir, "in/d"), filepath.Join(dir, "in/link"))()
	defer swap(t, filepath.Join(dir, "file"), filepath.Join(dir, "to"))()
	f := New(nil)
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		for _, path := range []string{"in/d/f", "file"} {
			got, wireErr := call(t, f, "fs/readFile", expand(dir, `{"path":"$U/`+path+`","followSymlinks":false}`))
			if wireErr == nil && got != expand(dir, `{"dataBase64":b64(inside)}`) {
				t.Fatalf("read %s", got)
			}
			call(t, f, "fs/writeFile", expand(dir, `{"path":"$U/`+path+`","dataBase64":b64(inside),"followSymlinks":false}`))
		}
		call(t, f, "fs/createDirectory", expand(dir, `{"path":"$U/in/d/new/n","followSymlinks":false}`))
		call(t, f, "fs/remove", expand(dir, `{"path":"$U/in/d/keep","recursive":false,"followSymlinks":false}`))
	}
	holds(t, filepath.Join(dir, "out/f"), "outside")
	holds(t, filepath.Join(dir, "out/keep"), "")
	missing(t, filepath.Join(dir, "out/new"))
}

// No descriptor is left behind, on whatever way out.
func TestNoDescriptorsLeak(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, nofollowTree...)
	open := func() int {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		check(t, err)
		defer unix.Close(fd)
		return fd // the lowest that is free
	}
	before := open()
	for _, path := range []string{"f", "lf", "ld/x", "d", "fifo", "none", "none/x", "f/x", "dangling", "d/x"} {
		for method := range Methods {
			for _, more := range []string{`"followSymlinks":false,"recursive":false`, `"recursive":true`} {
				f := New(nil)
				call(t, f, method, expand(dir, `{"path":"$U/`+path+`","sourcePath":"$U/`+path+`","destinationPath":"$U/copy","dataBase64":"",
					"handleId":"h","mode":"replace","options":{"maxDepth":9,"maxDirectories":9,"maxEntries":9,"followDirectorySymlinks":true},`+more+`}`))
				f.Close()
			}
		}
		os.RemoveAll(dir)
		build(t, dir, nofollowTree...)
	}
	if after := open(); after > before+3 { // the runtime may open some of its own
		t.Errorf("lowest free descriptor was %d, is %d", before, after)
	}
}
