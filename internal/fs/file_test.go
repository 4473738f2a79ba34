package fs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestReadFile(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "d/", "f=hello", "empty=", "l>f", "ld>d", "dangling>none", "loop>loop", "fifo|")
	run(t, dir, []req{
		{"readFile", `{"path":"$U/f"}`, `{"dataBase64":b64(hello)}`},
		{"readFile", `{"path":"$U/f","followSymlinks":null,"sandbox":null}`, `{"dataBase64":b64(hello)}`},
		{"readFile", `{"path":"$U/empty"}`, `{"dataBase64":""}`},
		{"readFile", `{"path":"$U/l"}`, `{"dataBase64":b64(hello)}`},
		{"readFile", `{"path":"$U/none"}`, enoent},
		{"readFile", `{"path":"$U/dangling"}`, enoent},
		{"readFile", `{"path":"$U/loop"}`, eloop},
		{"readFile", `{"path":"$U/f/x"}`, enotdir},
		{"readFile", `{"path":"$U/d"}`, "-32600 path `$D/d` is not a file"},
		{"readFile", `{"path":"$U/ld"}`, "-32600 path `$D/ld` is not a file"},
		{"readFile", `{"path":"$U/fifo"}`, "-32600 path `$D/fifo` is not a file"},
		{"readFile", `{"path":"file:///dev/null"}`, "-32600 path `/dev/null` is not a file"},
		{"readFile", `{"path":"file:///"}`, "-32600 path `/` is not a file"},
		{"readFile", `{"path":"$U/` + strings.Repeat("n", 256) + `"}`, enametoolong},
		{"readFile", `{"path":"$U/` + strings.Repeat("n/", 3000) + `"}`, enametoolong},
	})
}

func TestReadFileOfProc(t *testing.T) {
	want, err := os.ReadFile("/proc/version")
	check(t, err)
	got, wireErr := call(t, New(nil), "fs/readFile", `{"path":"file:///proc/version"}`)
	if wireErr != nil || got != string(contents(want).AppendJSON(nil)) {
		t.Errorf("got %s, %v", got, wireErr)
	}
}

func TestReadFileTooLarge(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "big=")
	check(t, os.Truncate(filepath.Join(dir, "big"), maxFile+1))
	run(t, dir, []req{
		{"readFile", `{"path":"$U/big"}`, "-32600 file is too large to read: limit is 536870912 bytes"},
	})
}

// The size that a file had when it was opened is neither trusted nor needed.
func TestReadAll(t *testing.T) {
	dir := tempDir(t)
	text := strings.Repeat("0123456789", 300)
	build(t, dir, "f="+text)
	file, err := os.Open(filepath.Join(dir, "f"))
	check(t, err)
	defer file.Close()
	for _, c := range []struct {
		size, limit int64
		ok          bool
	}{{3000, 3000, true}, {0, 3000, true}, {5000, 5000, true}, {-1, 3000, true}, {10, 3000, true},
		{3000, 2999, false}, {0, 2999, false}, {10, 10, false}, {10, 600, false}} {
		data, err := readAll(file, c.size, c.limit)
		if c.ok != (err == nil) || c.ok && string(data) != text {
			t.Errorf("size %d, limit %d: %d bytes, %v", c.size, c.limit, len(data), err)
		}
	}
}

func TestWriteFile(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "d/", "f=longer than before", "l>f", "dangling>new", "ld>d", "fifo|")
	notFile := "-32600 path `$D/fifo` is not a file"
	run(t, dir, []req{
		{"writeFile", `{"path":"$U/a","dataBase64":b64(one)}`, ok},
		{"writeFile", `{"path":"$U/l","dataBase64":b64(two)}`, ok},
		{"writeFile", `{"path":"$U/dangling","dataBase64":b64(three)}`, ok},
		{"writeFile", `{"path":"$U/empty","dataBase64":""}`, ok},
		{"writeFile", `{"path":"$U/no/x","dataBase64":""}`, enoent},
		{"writeFile", `{"path":"$U/f/x","dataBase64":""}`, enotdir},
		{"writeFile", `{"path":"$U/d","dataBase64":""}`, eisdir},
		{"writeFile", `{"path":"$U/ld","dataBase64":""}`, eisdir},
		{"writeFile", `{"path":"$U/fifo","dataBase64":b64(x)}`, notFile},
		{"writeFile", `{"path":"file:///dev/null","dataBase64":b64(x)}`, "-32600 path `/dev/null` is not a file"},
		{"writeFile", `{"path":"$U/x","dataBase64":"!!"}`, "-32600 fs/writeFile requires valid base64 dataBase64: Invalid symbol 33, offset 0."},
		{"writeFile", `{"path":"file:///C:/x","dataBase64":"*","sandbox":$S}`, "-32600 fs/writeFile requires valid base64 dataBase64: Invalid symbol 42, offset 0."},
		{"readFile", `{"path":"$U/x"}`, enoent},
	})
	holds(t, filepath.Join(dir, "a"), "one")
	holds(t, filepath.Join(dir, "f"), "two")
	holds(t, filepath.Join(dir, "new"), "three")
	holds(t, filepath.Join(dir, "empty"), "")
	info, err := os.Stat(filepath.Join(dir, "a"))
	check(t, err)
	if info.Mode() != 0o644 {
		t.Errorf("a new file has mode %v", info.Mode())
	}
}

func TestWriteFileMegabytes(t *testing.T) {
	dir := tempDir(t)
	text := strings.Repeat("0123456789abcdef", 1<<18)
	run(t, dir, []req{
		{"writeFile", `{"path":"$U/m","dataBase64":b64(` + text + `)}`, ok},
		{"readFile", `{"path":"$U/m"}`, `{"dataBase64":b64(` + text + `)}`},
	})
}

// An existing file stays the file that it is.
func TestWriteFileInPlace(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "f=old")
	file, other := filepath.Join(dir, "f"), filepath.Join(dir, "other")
	check(t, os.Chmod(file, 0o755))
	check(t, os.Link(file, other))
	before, err := os.Stat(file)
	check(t, err)
	run(t, dir, []req{{"writeFile", `{"path":"$U/f","dataBase64":b64(new contents)}`, ok}})
	after, err := os.Stat(file)
	check(t, err)
	if !os.SameFile(before, after) || after.Mode() != 0o755 {
		t.Errorf("was %v, is %v", before.Mode(), after.Mode())
	}
	holds(t, other, "new contents")
}

// Reading a fifo must not even wake who waits at its other end.
func TestFifoIsLeftAlone(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "fifo|")
	path := filepath.Join(dir, "fifo")
	opened := make(chan error, 1)
	go func() {
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		opened <- err
	}()
	time.Sleep(20 * time.Millisecond)
	for _, method := range []string{"readFile", "walk", "readDirectory", "getMetadata", "copy", "open"} {
		call(t, New(nil), "fs/"+method, expand(dir, `{"path":"$U/fifo","sourcePath":"$U/fifo","destinationPath":"$U/x",
			"recursive":true,"handleId":"h","options":{"maxDepth":1,"maxDirectories":1,"maxEntries":1,"followDirectorySymlinks":true}}`))
	}
	select {
	case err := <-opened:
		t.Errorf("the writer was woken: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(fd)
	check(t, <-opened)
}

// What is opened is looked at again: here the file of the first look is swapped
// for a fifo all the time.
func TestSwappedForFifo(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "f=x", "fifo|")
	stop := swap(t, filepath.Join(dir, "f"), filepath.Join(dir, "fifo"))
	defer stop()
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		for _, params := range []string{`{"path":"$U/f"}`, `{"path":"$U/f","followSymlinks":false}`} {
			call(t, New(nil), "fs/readFile", expand(dir, params))
		}
		call(t, New(nil), "fs/writeFile", expand(dir, `{"path":"$U/f","dataBase64":b64(x)}`))
	}
}

// swap exchanges two names over and over until the returned function is called.
func swap(t *testing.T, a, b string) (stop func()) {
	t.Helper()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
				if err != nil && err != syscall.ENOENT {
					t.Errorf("renameat2: %v", err)
					return
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}
