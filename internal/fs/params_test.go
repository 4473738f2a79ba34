package fs

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

// requests are params of each method that would work, less the paths' names.
var requests = map[string]string{
	"fs/readFile":        `{"path":"$U/f","followSymlinks":true}`,
	"fs/writeFile":       `{"path":"$U/f","dataBase64":"","followSymlinks":true}`,
	"fs/createDirectory": `{"path":"$U/d","recursive":true,"followSymlinks":true}`,
	"fs/getMetadata":     `{"path":"$U/f","followSymlinks":true}`,
	"fs/canonicalize":    `{"path":"$U/f"}`,
	"fs/readDirectory":   `{"path":"$U"}`,
	"fs/walk":            `{"path":"$U","options":{"maxDepth":1,"maxDirectories":1,"maxEntries":1,"followDirectorySymlinks":false,"pruneHiddenDirectories":false}}`,
	"fs/remove":          `{"path":"$U/x","recursive":true,"force":true,"followSymlinks":true}`,
	"fs/copy":            `{"sourcePath":"$U/f","destinationPath":"$U/g","recursive":false}`,
	"fs/open":            `{"handleId":"h","path":"$U/f","mode":"read"}`,
	"fs/readBlock":       `{"handleId":"h","offset":0,"len":1}`,
	"fs/writeBlock":      `{"handleId":"h","offset":0,"chunk":"eA=="}`,
	"fs/close":           `{"handleId":"h"}`,
}

// What may be left out, and what may be null.
var (
	optional = []string{"followSymlinks", "recursive", "force", "mode", "pruneHiddenDirectories"}
	nullable = []string{"followSymlinks", "recursive", "force"}
)

// decode says how a decoder likes the params.
func decode(t *testing.T, method string, params any) (code int) {
	t.Helper()
	text, err := json.Marshal(params)
	check(t, err)
	v, err := proto.Parse(text)
	check(t, err)
	op, err := Methods[method](v)
	if err != nil {
		return proto.WireError(err).Code
	}
	if op == nil {
		t.Errorf("%s %s: neither operation nor error", method, text)
	}
	return 0
}

// Each member is missing, null or of another type in turn.
func TestDecoding(t *testing.T) {
	if got, want := slices.Sorted(maps.Keys(Methods)), slices.Sorted(maps.Keys(requests)); !slices.Equal(got, want) {
		t.Fatalf("methods are %v", got)
	}
	for method, text := range requests {
		var params map[string]any
		check(t, json.Unmarshal([]byte(expand("/tmp", text)), &params))
		for _, bad := range []any{nil, []int{}, "x", 1, true} {
			if code := decode(t, method, bad); code != proto.CodeInvalidParams {
				t.Errorf("%s %v: code %d", method, bad, code)
			}
		}
		params["unknown"] = []int{}
		if code := decode(t, method, params); code != 0 {
			t.Errorf("%s %v: code %d", method, params, code)
		}
		delete(params, "unknown")
		vary(t, method, params, params)
		if options, ok := params["options"].(map[string]any); ok {
			vary(t, method, params, options)
		}
	}
}

// vary changes the members of one object of params, one by one.
func vary(t *testing.T, method string, params, object map[string]any) {
	t.Helper()
	expect := func(name string, fine bool) {
		t.Helper()
		if code := decode(t, method, params); fine != (code == 0) || !fine && code != proto.CodeInvalidParams {
			t.Errorf("%s %s = %v: code %d", method, name, object[name], code)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		good := object[name]
		required := !slices.Contains(optional, name) || method == "fs/copy"
		delete(object, name)
		expect(name, !required)
		object[name] = nil
		expect(name, !required && slices.Contains(nullable, name))
		for _, other := range []any{-1, 1.5, []int{}} {
			object[name] = other
			expect(name, false)
		}
		object[name] = good
	}
}

func TestPathURIs(t *testing.T) {
	native := "-32602 invalid URI: relative URL without a base"
	run(t, "/tmp", []req{
		{"readFile", `{"path":"/tmp/a"}`, native},
		{"canonicalize", `{"path":"a"}`, native},
		{"getMetadata", `{"path":""}`, native},
		{"writeFile", `{"path":"~","dataBase64":""}`, native},
		{"copy", `{"sourcePath":"$U","destinationPath":"/tmp/x","recursive":false}`, native},
		{"open", `{"handleId":"h","path":"/tmp"}`, native},
		{"canonicalize", `{"path":"https://x/y"}`, "-32602 unsupported path URI scheme `https`"},
		{"canonicalize", `{"path":"$U?"}`, "-32602 query parameters are not allowed in path URIs"},
		{"canonicalize", `{"path":"$U#x"}`, "-32602 fragments are not allowed in path URIs"},
		{"readFile", `{"path":"$U/%00"}`, "-32602 '$U/%00' is invalid on 'linux'"},
	})
	for method, params := range requests {
		var p map[string]any
		check(t, json.Unmarshal([]byte(params), &p))
		for _, name := range []string{"path", "sourcePath", "destinationPath"} {
			if good := p[name]; good != nil {
				p[name] = "file://server/share"
				text, err := json.Marshal(p)
				check(t, err)
				run(t, "/tmp", []req{{method[3:], string(text), "-32600 'file://server/share' is invalid on 'linux'"}})
				p[name] = good
			}
		}
	}
}

// Confinement that is not on offer is refused by every method that can be asked
// for it, after its own arguments and before anything is done.
func TestSandbox(t *testing.T) {
	const refused = "-32600 file operations cannot be confined here"
	dir := tempDir(t)
	build(t, dir, "f=F")
	for method, params := range requests {
		want := refused
		switch method {
		case "fs/readBlock", "fs/writeBlock": // have no sandbox
			want = unknown
		case "fs/close":
			want = ok
		}
		run(t, dir, []req{{method[3:], params[:len(params)-1] + `,"sandbox":$S}`, want}})
	}
	holds(t, dir+"/f", "F")
	run(t, dir, []req{
		{"readFile", `{"path":"$U/f","sandbox":{"permissions":{"type":"disabled"},"windowsSandboxLevel":"disabled"}}`, `{"dataBase64":b64(F)}`},
		{"readFile", `{"path":"$U/f","sandbox":{"permissions":{"type":"external","network":"restricted"},"windowsSandboxLevel":"disabled"}}`, `{"dataBase64":b64(F)}`},
		{"readFile", `{"path":"$U/f","sandbox":{"permissions":{"type":"managed","file_system":{"type":"unrestricted"},"network":"restricted"},"windowsSandboxLevel":"disabled"}}`, `{"dataBase64":b64(F)}`},
		{"readFile", `{"path":"$U/f","sandbox":{}}`, "-32602 missing field `permissions`"},
		{"walk", `{"path":"$U","sandbox":$S,"options":{"maxDepth":1,"maxDirectories":0,"maxEntries":1,"followDirectorySymlinks":false}}`,
			"-32600 filesystem walk limits must be greater than zero"},
		{"writeFile", `{"path":"$U/f","sandbox":$S,"dataBase64":"!"}`, "-32600 fs/writeFile requires valid base64 dataBase64: Invalid symbol 33, offset 0."},
		{"remove", `{"path":"$U/f","sandbox":$S,"followSymlinks":false}`, "-32603 recursive no-follow removal is unsupported"},
		{"open", `{"handleId":"123456789012345678901234567890123","path":"$U/f","sandbox":$S}`, longID},
	})
}
