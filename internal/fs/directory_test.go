package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestCreateDirectory(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "d/", "f=x", "l>d", "lf>f", "dangling>none")
	run(t, dir, []req{
		{"createDirectory", `{"path":"$U/a/b/c"}`, ok},
		{"createDirectory", `{"path":"$U/a/b/c"}`, ok},
		{"createDirectory", `{"path":"$U/a/b/c","recursive":null}`, ok},
		{"createDirectory", `{"path":"$U/a/b/c","recursive":true,"followSymlinks":null}`, ok},
		{"createDirectory", `{"path":"file:///"}`, ok},
		{"createDirectory", `{"path":"$U/x/y","recursive":false}`, enoent},
		{"createDirectory", `{"path":"$U/x","recursive":false}`, ok},
		{"createDirectory", `{"path":"$U/x","recursive":false}`, eexist},
		{"createDirectory", `{"path":"file:///","recursive":false}`, eexist},
		{"createDirectory", `{"path":"$U/f"}`, eexist},
		{"createDirectory", `{"path":"$U/f","recursive":false}`, eexist},
		{"createDirectory", `{"path":"$U/f/x"}`, enotdir},
		{"createDirectory", `{"path":"$U/f/x/y"}`, enotdir},
		{"createDirectory", `{"path":"$U/l/in"}`, ok},
		{"createDirectory", `{"path":"$U/l"}`, ok},
		{"createDirectory", `{"path":"$U/lf"}`, eexist},
		{"createDirectory", `{"path":"$U/dangling"}`, eexist},
		{"createDirectory", `{"path":"$U/dangling/x"}`, eexist},
		{"createDirectory", `{"path":"$U/` + strings.Repeat("n/", 3000) + `"}`, enametoolong},
		{"readDirectory", `{"path":"$U/d"}`, `{"entries":[{"fileName":"in","isDirectory":true,"isFile":false}]}`},
	})
	if info, err := os.Stat(filepath.Join(dir, "a/b")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("new directory: %v, %v", info, err)
	}
}

// A directory that is there already is left as it is.
func TestCreateDirectoryKeepsMode(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "d/")
	check(t, os.Chmod(filepath.Join(dir, "d"), 0o700))
	run(t, dir, []req{
		{"createDirectory", `{"path":"$U/d"}`, ok},
		{"createDirectory", `{"path":"$U/d","followSymlinks":false}`, ok},
	})
	if info, err := os.Stat(filepath.Join(dir, "d")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
}

func TestReadDirectory(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "e/", "loop>loop", "f=x")
	for item, entry := range map[string]string{
		"d/":            `{"fileName":"d","isDirectory":true,"isFile":false}`,
		"f=x":           `{"fileName":"f","isDirectory":false,"isFile":true}`,
		".hidden=":      `{"fileName":".hidden","isDirectory":false,"isFile":true}`,
		"ld>../e":       `{"fileName":"ld","isDirectory":true,"isFile":false}`,
		"lf>../f":       `{"fileName":"lf","isDirectory":false,"isFile":true}`,
		"fifo|":         `{"fileName":"fifo","isDirectory":false,"isFile":false}`,
		"dev>/dev/null": `{"fileName":"dev","isDirectory":false,"isFile":false}`,
		"dangling>none": ``,
		"self>self":     ``,
	} {
		os.RemoveAll(filepath.Join(dir, "one"))
		build(t, dir, "one/", "one/"+item)
		run(t, dir, []req{{"readDirectory", `{"path":"$U/one"}`, `{"entries":[` + entry + `]}`}})
	}
	run(t, dir, []req{
		{"readDirectory", `{"path":"$U/e"}`, `{"entries":[]}`},
		{"readDirectory", `{"path":"$U/none"}`, enoent},
		{"readDirectory", `{"path":"$U/f"}`, enotdir},
		{"readDirectory", `{"path":"$U/loop"}`, eloop},
		{"readDirectory", `{"path":"file:///dev/null"}`, enotdir},
	})
}

// All entries are counted for the message, dangling links excepted.
func TestReadDirectoryLimit(t *testing.T) {
	dir := tempDir(t)
	for i := range 2*readBatch + 5 {
		build(t, dir, fmt.Sprintf("%d=", i))
	}
	build(t, dir, "dangling>none")
	const n = 2*readBatch + 5
	if _, err := readDirectory(dir, n); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	result, err := readDirectory(dir, n-10)
	want := fmt.Sprintf("fs/readDirectory returned %d entries; limit is %d", n, n-10)
	if e, _ := err.(*proto.Error); result != nil || e == nil || e.Message != want || e.Code != proto.CodeInternal {
		t.Errorf("got %v, %v; want %s", result, err, want)
	}
}
