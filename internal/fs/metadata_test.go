package fs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// describe is the answer of getMetadata, less the times.
func describe(t *testing.T, dir, params string) (m struct {
	IsDirectory, IsFile, IsSymlink  bool
	Size, CreatedAtMs, ModifiedAtMs int64
}) {
	t.Helper()
	out, wireErr := call(t, New(nil), "fs/getMetadata", expand(dir, params))
	if wireErr != nil {
		t.Fatalf("%s: %v", params, wireErr)
	}
	check(t, json.Unmarshal([]byte(out), &m))
	return m
}

func TestGetMetadata(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "d/", "f=12345", "lf>f", "ld>d", "dangling>none", "loop>loop", "fifo|", "lfifo>fifo")
	kinds := map[string][3]bool{ // directory, file, link
		"f": {false, true, false}, "d": {true, false, false}, "lf": {false, true, true}, "ld": {true, false, true},
		"fifo": {false, false, false}, "lfifo": {false, false, true},
	}
	for name, want := range kinds {
		m := describe(t, dir, `{"path":"$U/`+name+`"}`)
		if got := [3]bool{m.IsDirectory, m.IsFile, m.IsSymlink}; got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		if m.IsFile && m.Size != 5 || m.CreatedAtMs != 0 || time.Since(time.UnixMilli(m.ModifiedAtMs)) > time.Minute {
			t.Errorf("%s: %+v", name, m)
		}
	}
	run(t, dir, []req{
		{"getMetadata", `{"path":"$U/none"}`, enoent},
		{"getMetadata", `{"path":"$U/dangling"}`, enoent},
		{"getMetadata", `{"path":"$U/loop"}`, eloop},
		{"getMetadata", `{"path":"$U/f/x"}`, enotdir},
	})
	if m := describe(t, dir, `{"path":"file:///"}`); !m.IsDirectory {
		t.Errorf("root: %+v", m)
	}
}

func TestGetMetadataTimes(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "f=", "before=")
	set := func(name string, ms int64) {
		check(t, os.Chtimes(filepath.Join(dir, name), time.Now(), time.UnixMilli(ms)))
	}
	set("f", 1000000000123)
	set("before", -5000) // 1969
	for _, c := range []struct {
		params string
		want   int64
	}{
		{`{"path":"$U/f"}`, 1000000000123}, {`{"path":"$U/f","followSymlinks":false}`, 1000000000123},
		{`{"path":"$U/before"}`, 0}, {`{"path":"$U/before","followSymlinks":false}`, -5000},
	} {
		if m := describe(t, dir, c.params); m.ModifiedAtMs != c.want {
			t.Errorf("%s: %+v, want %d", c.params, m, c.want)
		}
	}
	// Not every file system knows when a file was made.
	if ms := describe(t, dir, `{"path":"$U/f","followSymlinks":false}`).CreatedAtMs; ms != 0 && time.Since(time.UnixMilli(ms)) > time.Minute {
		t.Errorf("created at %d", ms)
	}
	for _, c := range [][3]int64{{1, 999999999, 1999}, {1 << 60, 0, 0}, {-1 << 60, 0, 0}, {-1, 500000000, -500}} {
		if got := milliseconds(c[0], c[1]); got != c[2] {
			t.Errorf("milliseconds(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

func TestCanonicalize(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "d/s/", "f=x", "lf>f", "ld>d", "up>../"+filepath.Base(dir)+"/d/s", "dangling>none", "loop>loop")
	run(t, dir, []req{
		{"canonicalize", `{"path":"$U/f"}`, `{"path":"$U/f"}`},
		{"canonicalize", `{"path":"$U/lf"}`, `{"path":"$U/f"}`},
		{"canonicalize", `{"path":"$U/ld/s"}`, `{"path":"$U/d/s"}`},
		{"canonicalize", `{"path":"$U/up"}`, `{"path":"$U/d/s"}`},
		{"canonicalize", `{"path":"$U/d/../f"}`, `{"path":"$U/f"}`},
		{"canonicalize", `{"path":"$U//d///s/"}`, `{"path":"$U/d/s"}`},
		{"canonicalize", `{"path":"file:///../../..$D/f"}`, `{"path":"$U/f"}`},
		{"canonicalize", `{"path":"file:///"}`, `{"path":"file:///"}`},
		{"canonicalize", `{"path":"$U/none"}`, enoent},
		{"canonicalize", `{"path":"$U/dangling"}`, enoent},
		{"canonicalize", `{"path":"$U/f/x"}`, enotdir},
		{"canonicalize", `{"path":"$U/loop"}`, eloop},
	})
}
