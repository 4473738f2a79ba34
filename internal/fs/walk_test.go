package fs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

var walkTree = []string{"a/b/c/4=", ".h/x/6=", "1=", "a/2=", "a/b/3=", ".h/5=", "z/7=", ".dot=",
	"la>a", "l1>1", "ld>none", "z/up>..", "ff|"}

// walked is the answer of a walk: paths below the root, directories with a slash
// behind, errors and a cut in words.
func walked(t *testing.T, dir, params string) string {
	t.Helper()
	out, wireErr := call(t, New(nil), "fs/walk", expand(dir, params))
	if wireErr != nil {
		t.Fatalf("%s: %v", params, wireErr)
	}
	var r struct {
		Entries   []struct{ Path, Kind string }
		Errors    []struct{ Path, Message string }
		Truncated bool
	}
	check(t, json.Unmarshal([]byte(out), &r))
	var words []string
	for _, e := range r.Entries {
		suffix := map[string]string{"file": "", "directory": "/"}[e.Kind]
		words = append(words, strings.TrimPrefix(e.Path, expand(dir, "$U/"))+suffix)
	}
	for _, e := range r.Errors {
		words = append(words, "error:"+strings.TrimPrefix(e.Path, expand(dir, "$U/"))+":"+e.Message)
	}
	if r.Truncated {
		words = append(words, "truncated")
	}
	return strings.Join(words, " ")
}

func walkParams(path string, depth, directories, entries int, follow bool, more string) string {
	return fmt.Sprintf(`{"path":"$U%s","options":{"maxDepth":%d,"maxDirectories":%d,"maxEntries":%d,"followDirectorySymlinks":%v%s}}`,
		path, depth, directories, entries, follow, more)
}

func TestWalk(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, walkTree...)
	const level0 = ".dot .h/ 1 a/ z/"
	const all = level0 + " .h/5 .h/x/ a/2 a/b/ z/7 .h/x/6 a/b/3 a/b/c/ a/b/c/4"
	for _, c := range []struct {
		path                        string
		depth, directories, entries int
		follow                      bool
		more, want                  string
	}{
		{"", 10, 100, 100, false, "", all},
		{"/", 10, 100, 100, false, `,"pruneHiddenDirectories":false`, all},
		{"", 64, 10000, 50000, false, "", all},
		{"", 10, 100, 100, true, "", ".dot .h/ 1 a/ la/ z/ .h/5 .h/x/ a/2 a/b/ z/7 z/up/ .h/x/6 a/b/3 a/b/c/ a/b/c/4"},
		{"", 10, 100, 100, false, `,"pruneHiddenDirectories":true`, level0 + " a/2 a/b/ z/7 a/b/3 a/b/c/ a/b/c/4"},
		{"", 0, 100, 100, false, "", level0},
		{"", 1, 100, 100, false, "", level0 + " .h/5 .h/x/ a/2 a/b/ z/7"},
		{"", 2, 100, 100, false, "", level0 + " .h/5 .h/x/ a/2 a/b/ z/7 .h/x/6 a/b/3 a/b/c/"},
		{"", 10, 1, 100, false, "", level0 + " truncated"},
		{"", 10, 2, 100, false, "", level0 + " .h/5 .h/x/ truncated"},
		{"", 0, 1, 100, false, "", level0},
		// Looked at are also l1, la and ff, but not what dangles.
		{"", 10, 100, 1, false, "", ".dot truncated"},
		{"", 0, 100, 7, false, "", ".dot .h/ 1 a/ truncated"},
		{"", 0, 100, 8, false, "", level0},
		{"", 10, 100, 8, false, "", level0 + " truncated"},
		{"/1", 10, 100, 100, false, "", ""},
		{"/ff", 10, 100, 100, true, "", ""},
		{"/la", 10, 100, 100, false, "", ""},
		{"/l1", 10, 100, 100, true, "", ""},
		{"/la", 10, 100, 100, true, "", "la/2 la/b/ la/b/3 la/b/c/ la/b/c/4"},
		{"/la/b", 0, 100, 100, false, "", "la/b/3 la/b/c/"},
		{"/z/../z/", 10, 100, 100, false, "", "z/7"},
	} {
		params := walkParams(c.path, c.depth, c.directories, c.entries, c.follow, c.more)
		if got := walked(t, dir, params); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", params, got, c.want)
		}
	}
}

func TestWalkRefusals(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "f=", "dangling>none")
	const (
		zero = "-32600 filesystem walk limits must be greater than zero"
		over = "-32600 filesystem walk limits exceed maximums: depth=64, directories=10000, entries=50000"
	)
	run(t, dir, []req{
		{"walk", walkParams("", 10, 100, 0, false, ""), zero},
		{"walk", walkParams("", 10, 0, 100, false, ""), zero},
		{"walk", walkParams("/none", 65, 0, 100, false, ""), zero},
		{"walk", walkParams("", 65, 100, 100, false, ""), over},
		{"walk", walkParams("", 10, 10001, 100, false, ""), over},
		{"walk", walkParams("/none", 10, 100, 50001, false, ""), over},
		{"walk", walkParams("/none", 10, 100, 100, false, ""), enoent},
		{"walk", walkParams("/dangling", 10, 100, 100, false, ""), enoent},
		{"walk", walkParams("/dangling", 10, 100, 100, true, ""), enoent},
		{"walk", walkParams("/f/x", 10, 100, 100, false, ""), enotdir},
		{"walk", walkParams("", 1, 1, 1, false, ""), `{"entries":[{"path":"$U/f","kind":"file"}],"errors":[],"truncated":false}`},
	})
}

// A name that is not UTF-8 has an error instead of an entry, and counts.
func TestWalkNotUTF8(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "a=", "c=")
	check(t, os.MkdirAll(filepath.Join(dir, "b\xff\xfe/in"), 0o777))
	const bad = "error:b%EF%BF%BD%EF%BF%BD:No such file or directory (os error 2)"
	for entries, want := range map[int]string{1: "a truncated", 2: "a " + bad + " truncated", 3: "a c " + bad} {
		if got := walked(t, dir, walkParams("", 10, 10, entries, false, "")); got != want {
			t.Errorf("%d entries: got %s, want %s", entries, got, want)
		}
	}
	// Below such a directory paths are as they were asked for.
	if got := walked(t, dir, walkParams("/b%ff%fe", 10, 10, 10, false, "")); got != "b%ff%fe/in/" {
		t.Errorf("got %s", got)
	}
}

// The first names are found in whatever order a large directory gives them.
func TestWalkLargeDirectory(t *testing.T) {
	dir := tempDir(t)
	for i := range 10 * readBatch {
		check(t, os.WriteFile(fmt.Sprintf("%s/%05d", dir, 10*readBatch-i), nil, 0o666))
	}
	if got := walked(t, dir, walkParams("", 0, 1, 3, false, "")); got != "00001 00002 00003 truncated" {
		t.Errorf("got %s", got)
	}
}

// The answer is cut before 4 MiB, counting 64 and the length of the URI for each
// entry, of the message too for errors.
func TestWalkSize(t *testing.T) {
	w := walker{}
	uri := strings.Repeat("n", 193-len("file:///"))
	n := 0
	for ; w.addEntry("/"+uri, "file") == nil; n++ {
	}
	if want := maxWalkSize / (193 + 64); n != want {
		t.Errorf("%d entries, want %d", n, want)
	}
	w = walker{}
	for n = 0; w.addError("/"+uri, os.ErrInvalid) == nil; n++ {
	}
	if want := maxWalkSize / (193 + len("invalid argument") + 64); n != want {
		t.Errorf("%d errors, want %d", n, want)
	}
}

// Paths are echoed as the root was given.
func TestWalkEchoesTheRoot(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "d/e f/g=")
	const options = `"options":{"maxDepth":1,"maxDirectories":9,"maxEntries":9,"followDirectorySymlinks":false}}`
	for given, echoed := range map[string]string{"d": "d", "d/": "d", "d//": "d/", "%64": "%64", "./d/.": "d", "x/../d": "d"} {
		echoed = "$U/" + echoed
		run(t, dir, []req{{"walk", `{"path":"$U/` + given + `",` + options, `{"entries":[{"path":"` + echoed + `/e%20f","kind":"directory"},` +
			`{"path":"` + echoed + `/e%20f/g","kind":"file"}],"errors":[],"truncated":false}`}})
	}
}

// visited notes what a walk meets.
type visited []string

func (v *visited) Found(uri, path string, directory bool) {
	*v = append(*v, fmt.Sprint(uri, " ", path, " ", directory))
}

func (v *visited) Failed(uri, message string) { *v = append(*v, uri+" "+message) }

func TestWalkWithAVisitor(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "a/f=", "l>a", "m>a/f")
	check(t, os.Mkdir(filepath.Join(dir, "x\xff"), 0o777))
	root, err := proto.ParseURI(proto.FileURI(dir).String() + "/")
	check(t, err)
	var v visited
	truncated, err := Walk(root, 6, 10, 10, &v)
	check(t, err)
	u := proto.FileURI(dir).String()
	want := []string{
		fmt.Sprintf("%s/a %s/a true", u, dir), fmt.Sprintf("%s/l %s/l true", u, dir),
		u + "/x%EF%BF%BD No such file or directory (os error 2)", fmt.Sprintf("%s/a/f %s/a/f false", u, dir),
	}
	if fmt.Sprint(v) != fmt.Sprint(want) || truncated {
		t.Errorf("got %q, cut %v, want %q", v, truncated, want)
	}
	v = nil
	if truncated, err = Walk(root, 6, 10, 2, &v); err != nil || !truncated || len(v) != 2 {
		t.Error(truncated, err, v)
	}
	if _, err = Walk(proto.FileURI(dir+"/none"), 6, 10, 10, &v); !os.IsNotExist(err) {
		t.Error(err)
	}
}

func TestReadUpTo(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "f=12345", "l>f", "ff|", "d/")
	for name, want := range map[string]string{"f": "123 <nil>", "l": "123 <nil>", "ff": " path `$D/ff` is not a file", "d": " path `$D/d` is not a file"} {
		data, err := ReadUpTo(filepath.Join(dir, name), 3)
		if got := fmt.Sprint(string(data), " ", err); got != expand(dir, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if data, err := ReadUpTo(filepath.Join(dir, "f"), 9); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := ReadUpTo(filepath.Join(dir, "none"), 9); !os.IsNotExist(err) {
		t.Error(err)
	}
}
