package fs

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // what the expected modes are for
	os.Exit(m.Run())
}

// tempDir is a directory that other users can pass through, unlike t.TempDir.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fs")
	check(t, err)
	dir, err = filepath.EvalSymlinks(dir)
	check(t, err)
	check(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// build fills dir: "d/" is a directory, "f=text" a file, "l>to" a link, "p|" a
// fifo. Parents are made.
func build(t *testing.T, dir string, items ...string) {
	t.Helper()
	for _, item := range items {
		i := strings.IndexAny(item, "=>|")
		if i < 0 {
			check(t, os.MkdirAll(filepath.Join(dir, item), 0o777))
			continue
		}
		path := filepath.Join(dir, item[:i])
		check(t, os.MkdirAll(filepath.Dir(path), 0o777))
		switch item[i] {
		case '=':
			check(t, os.WriteFile(path, []byte(item[i+1:]), 0o666))
		case '>':
			check(t, os.Symlink(item[i+1:], path))
		case '|':
			check(t, syscall.Mkfifo(path, 0o666))
		}
	}
}

// call sends one request through Methods and returns the result's JSON or the
// error as the wire would carry it. It fails if that takes long.
func call(t *testing.T, f *Files, method, params string) (string, *proto.Error) {
	t.Helper()
	v, err := proto.Parse([]byte(params))
	if err != nil {
		t.Fatalf("params %s: %v", params, err)
	}
	timer := time.AfterFunc(20*time.Second, func() { panic(method + " blocks: " + params) })
	defer timer.Stop()
	op, err := Methods[method](v)
	if err != nil {
		return "", proto.WireError(err)
	}
	result, err := op(f)
	if err != nil {
		return "", proto.WireError(err)
	}
	out := string(result.AppendJSON(nil))
	if s, ok := result.(proto.Sizer); ok && s.SizeJSON() < len(out) {
		t.Errorf("%s: SizeJSON() = %d for %d bytes", method, s.SizeJSON(), len(out))
	}
	return out, nil
}

// req is a request and its answer: JSON, or "CODE message" of an error. In both
// $U stands for the URI of the directory, $D for its path and $S for a sandbox
// that restricts; b64(text) is encoded.
type req struct{ method, params, want string }

const ok = "{}"

// run makes the requests one after the other, over one connection.
func run(t *testing.T, dir string, steps []req) {
	t.Helper()
	f := New(nil)
	defer f.Close()
	runOn(t, f, dir, steps)
}

func runOn(t *testing.T, f *Files, dir string, steps []req) {
	t.Helper()
	for _, s := range steps {
		params, want := expand(dir, s.params), expand(dir, s.want)
		got, err := call(t, f, "fs/"+s.method, params)
		if err != nil {
			got = fmt.Sprintf("%d %s", err.Code, err.Message)
		}
		if got != want {
			t.Errorf("fs/%s %s\n got %s\nwant %s", s.method, params, got, want)
		}
	}
}

const restricting = `{"permissions":{"type":"managed","file_system":{"type":"restricted","entries":[]},` +
	`"network":"enabled"},"windowsSandboxLevel":"disabled"}`

func expand(dir, s string) string {
	s = strings.NewReplacer("$U", proto.FileURI(dir).String(), "$D", dir, "$S", restricting).Replace(s)
	for {
		before, rest, found := strings.Cut(s, "b64(")
		if !found {
			return s
		}
		text, after, _ := strings.Cut(rest, ")")
		s = before + `"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"` + after
	}
}

// holds checks the contents of a file.
func holds(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
	}
}

// missing checks that there is nothing under that name.
func missing(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s: %v, want it to be missing", path, err)
	}
}

// Errors that many methods share.
const (
	enoent       = "-32004 No such file or directory (os error 2)"
	eacces       = "-32600 Permission denied (os error 13)"
	eexist       = "-32603 File exists (os error 17)"
	enotdir      = "-32603 Not a directory (os error 20)"
	eisdir       = "-32603 Is a directory (os error 21)"
	einval       = "-32600 Invalid argument (os error 22)"
	enotempty    = "-32603 Directory not empty (os error 39)"
	eloop        = "-32603 Symbolic link loop (os error 40)"
	ebadf        = "-32603 Bad file descriptor (os error 9)"
	enametoolong = "-32603 Filename too long (os error 36)"
)
