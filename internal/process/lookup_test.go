package process

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestProgramsAreLookedUpInTheCommandsOwnPath(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a/one": 0o755, "b/one": 0o755, "a/two": 0o644, "b/two": 0o755, "a/three": 0o644, "c/sub/four": 0o755} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	ab := dir + "/a:" + dir + "/b"
	for _, test := range []struct {
		name, cwd, path string
		want            string
		err             error
	}{
		{"one", "/", ab, dir + "/a/one", nil},
		{"one", "/", dir + "/missing:" + dir + "/b:" + dir + "/a", dir + "/b/one", nil},
		{"two", "/", ab, dir + "/b/two", nil}, // the first is not executable
		{"three", "/", ab, "", syscall.EACCES},
		{"sub", "/", dir + "/c", "", syscall.EACCES}, // a directory
		{"none", "/", ab, "", syscall.ENOENT},
		{"one", dir, "a", dir + "/a/one", nil}, // a relative part of PATH
		{"four", dir + "/c", "x:sub", dir + "/c/sub/four", nil},
		{"one", dir + "/a", ":/bin", dir + "/a/one", nil}, // an empty part is the working directory
		{"one", dir + "/a", "/bin:", dir + "/a/one", nil},
		{"one", dir + "/a", "", dir + "/a/one", nil}, // the only part too
		{"./one", dir + "/a", ab, dir + "/a/./one", nil},
		{"a/one", dir, "", dir + "/a/one", nil},
		{"/any/thing", "/", "", "/any/thing", nil}, // for the kernel to judge
	} {
		got, err := lookup(test.name, test.cwd, map[string]string{"PATH": test.path})
		if got != test.want || err != test.err {
			t.Errorf("%s in %s from %s: %q, %v; want %q, %v", test.name, test.path, test.cwd, got, err, test.want, test.err)
		}
	}
}

func TestWithoutPathTheDefaultCounts(t *testing.T) {
	got, err := lookup("sh", "/", nil)
	if err != nil || got != "/bin/sh" {
		t.Errorf("sh is %q, %v", got, err)
	}
	spec := Spec{ID: "p", Argv: []string{"sh", "-c", "echo found"}, Cwd: "/", Env: map[string]string{}}
	if got := prints(t, spec); got != "found\n" {
		t.Errorf("it prints %q", got)
	}
}
