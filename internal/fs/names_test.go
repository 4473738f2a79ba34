package fs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

// Every name that the system allows can be used through its URI.
func TestOddNames(t *testing.T) {
	for _, name := range []string{
		"new\nline", "tab\tand\rreturn", "\xff\xfe", "caf\xe9", "-rf", "--", strings.Repeat("n", 255),
		"🦊 emoji 日本", "%2F", "100%", "a b", `back\slash`, `"quoted"`, "#?<>`{}|^[];~", "\x01\x7f", "...", " ",
	} {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			build(t, dir, "d/", "copies/")
			uri := string(proto.AppendURI(nil, filepath.Join(dir, "d", name)))
			quoted := string(proto.AppendString(nil, name))
			entry := `{"fileName":` + quoted + `,"isDirectory":false,"isFile":true}`
			run(t, dir, []req{
				{"writeFile", `{"path":` + uri + `,"dataBase64":b64(odd)}`, ok},
				{"readFile", `{"path":` + uri + `}`, `{"dataBase64":b64(odd)}`},
				{"readFile", `{"path":` + uri + `,"followSymlinks":false}`, `{"dataBase64":b64(odd)}`},
				{"canonicalize", `{"path":` + uri + `}`, `{"path":` + uri + `}`},
				{"readDirectory", `{"path":"$U/d"}`, `{"entries":[` + entry + `]}`},
				{"copy", `{"sourcePath":` + uri + `,"destinationPath":"$U/copies/1","recursive":false}`, ok},
				{"copy", `{"sourcePath":"$U/d","destinationPath":"$U/e","recursive":true}`, ok},
				{"open", `{"handleId":"h","path":` + uri + `}`, `{"handleId":"h"}`},
			})
			holds(t, filepath.Join(dir, "d", name), "odd")
			holds(t, filepath.Join(dir, "e", name), "odd")
			holds(t, filepath.Join(dir, "copies/1"), "odd")
			run(t, dir, []req{
				{"remove", `{"path":` + uri + `,"force":false}`, ok},
				{"createDirectory", `{"path":` + uri + `,"followSymlinks":false}`, ok},
				{"remove", `{"path":"$U/d","force":false}`, ok},
			})
			missing(t, filepath.Join(dir, "d"))
		})
	}
}

// A name can hold what looks like an encoded slash, a path cannot: there it
// separates.
func TestEncodedSlash(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "d/f=x")
	run(t, dir, []req{
		{"readFile", `{"path":"$U/d%2Ff"}`, `{"dataBase64":b64(x)}`},
		{"readFile", `{"path":"$U/d%2F..%2Fd%2Ff","followSymlinks":false}`, `{"dataBase64":b64(x)}`},
		{"writeFile", `{"path":"$U/d%252Ff","dataBase64":b64(y)}`, ok},
	})
	holds(t, filepath.Join(dir, "d%2Ff"), "y")
}

func TestNotUTF8InDirectory(t *testing.T) {
	dir := tempDir(t)
	check(t, os.WriteFile(filepath.Join(dir, "x\xff\xfe"), nil, 0o666))
	run(t, dir, []req{
		{"readDirectory", `{"path":"$U"}`, `{"entries":[{"fileName":"x` + "\uFFFD\uFFFD" + `","isDirectory":false,"isFile":true}]}`},
		{"readFile", `{"path":"$U/x%ff%fe"}`, `{"dataBase64":""}`},
	})
}
