package discover

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestDeclaredFiles(t *testing.T) {
	const at = "p/.codex-plugin/plugin.json"
	const dot, outside = "path must start with `./`", "path must remain below the capability root"
	files := `mkdir -p p/d p/C:; for f in .app.json a d/a '\b' '..a' 'a..b' '...' 'C:/x' 'a b' 'a%%20b' 'a?b#c' '~' '..\b' 'a\..\b'; do printf "$f" | sed s,%%,%, >"p/$(printf "$f" | sed s,%%,%,)"; done; `
	files = strings.ReplaceAll(files, `printf "$f" | sed s,%%,%,`, `printf %s "$f" | sed s,%%,%,`)
	for path, want := range map[string]string{
		`./a`: "a=a", `././a`: "a=a", `./d//a`: "d/a=d/a", `./d/./a`: "d/a=d/a", `./a/`: "a=a", `./a/.`: "a=a",
		`./..a`: "..a=..a", `./a..b`: "a..b=a..b", `./...`: "...=...", `./C:/x`: "C:/x=C:/x", `./~`: "~=~",
		`./a b`: "a%20b=a b", `./a%20b`: "a%2520b=a%20b", `./a?b#c`: "a%3Fb%23c=a?b#c", `./\\b`: `%5Cb=\b`,
		`./none`: "", `./d`: "", `./.`: "", `././.`: "", `./..%2fa`: "",
		``: dot, `a`: dot, `.`: dot, `/a`: dot, `.\\a`: dot, ` ./a`: dot, `../a`: dot,
		`./`: outside, `.//a`: outside, `./..`: outside, `./../p/a`: outside, `./d/../a`: outside, `./..\\b`: outside,
		`./a\\..\\b`: outside, `./a\u0000`: outside,
	} {
		dir := tree(t, files+`m p '{"apps":"`+path+`"}' .codex`)
		got := answer(t, dir, "$U/p")
		_, got, _ = strings.Cut(got, "\n") // the manifest
		switch {
		case want == dot || want == outside:
			want = "apps p/.app.json=.app.json\nNS\nwarning: ignoring apps in $U/" + at + ": " + want
		case want != "":
			want = "apps p/" + want + "\nNS"
		default:
			want = "NS"
		}
		var out []string
		for line := range strings.Lines(got) {
			if strings.HasPrefix(line, "ns ") {
				line = "NS"
			}
			out = append(out, strings.TrimSpace(line))
		}
		if got = strings.Join(out, "\n"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
		}
	}
}

func TestDeclaredFilesThatCannotBeTaken(t *testing.T) {
	const head, ns = "plugin p/.codex-plugin/plugin.json={\"apps\":\"./a/b/c/d\"}\n", "ns p/.codex-plugin/plugin.json={\"apps\":\"./a/b/c/d\"}\n"
	const manifest = `m p '{"apps":"./a/b/c/d"}' .codex; mkdir -p p/a/b/c; `
	check(t, []example{
		{"link to itself", manifest + "ln -s d p/a/b/c/d", "", head + ns + "warning: failed to inspect capability file $U/p/a/b/c/d: Symbolic link loop (os error 40)"},
		{"dangling", manifest + "ln -s none p/a/b/c/d", "", head + ns},
		{"link outwards", manifest + "echo -n x >o; ln -s ../../../../o p/a/b/c/d", "", head + "apps p/a/b/c/d=x\n" + ns},
		{"fifo", manifest + "mkfifo p/a/b/c/d", "", head + ns},
		{"below a file", manifest + "rmdir p/a/b/c; echo >p/a/b/c", "", head + ns + "warning: failed to inspect capability file $U/p/a/b/c/d: Not a directory (os error 20)"},
		{"bad text", manifest + `printf 'a\342\202x' >p/a/b/c/d`, "", head + ns + "warning: capability file $U/p/a/b/c/d is not UTF-8: invalid utf-8 sequence of 2 bytes from index 1"},
	})
}

func TestManifests(t *testing.T) {
	const none = "0 0"
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, want := range map[string]string{
		``: none, `x`: none, `5`: none, `null`: none, `"./a"`: none, `{`: none, `{}`: none, `[]`: none,
		`{"mcpServers":"./m"}`: "1:./m 0", `{"apps":"./a"}`: "0 1:./a", `{"mcpServers":"","apps":"x"}`: "1: 1:x",
		`{"mcpServers":{},"apps":{"x":1}}`: "2 2", `{"mcpServers":null,"apps":[1]}`: none, `{"mcpServers":5,"apps":false}`: none,
		` {"apps" : "./a" } `: "0 1:./a", "\n\t{\"apps\":\"./a\"}\r\n": "0 1:./a",
		`{"apps":"./a"} x`: none, `{"apps":"./a",}`: none, `{"apps":"./a"`: none, `{"apps" "./a"}`: none, "\ufeff" + `{"apps":"./a"}`: none,
		"\v" + `{"apps":"./a"}`: none, `{"apps":"./a"}{}`: none, `{apps:1}`: none, `{"apps":}`: none, `{,}`: none,
		`{"apps":"./a","apps":"./b"}`: none, `{"mcpServers":{},"mcpServers":1}`: none, `{"x":1,"x":2,"apps":"./a"}`: "0 1:./a",
		`{"apps":{"x":1,"x":2}}`: "0 2", `{"\u0061pps":"\u002e/a"}`: "0 1:./a", `{"apps":"./\ud83d\ude00"}`: "0 1:./😀",
		`{"x":"\ud800","apps":"./a"}`: "0 1:./a", `{"x":{"\ud800":1},"apps":"./a"}`: "0 1:./a", `{"\ud800":1,"apps":"./a"}`: none,
		`{"apps":"./\ud800"}`: none, `{"apps":{"x":"\ud800"}}`: none, `{"apps":{"\ud800":1}}`: none,
		`{"x":"\q","apps":"./a"}`: none, `{"x":"\u12","apps":"./a"}`: none, "{\"x\":\"\x01\",\"apps\":\"./a\"}": none,
		`{"x":1e999,"apps":"./a"}`: "0 1:./a", `{"mcpServers":{"x":1e999}}`: "2 0", `{"x":01,"apps":"./a"}`: none, `{"x":1.,"apps":"./a"}`: none,
		`{"x":-,"apps":"./a"}`: none, `{"x":-0.5E+1,"apps":"./a"}`: "0 1:./a", `{"x":.5,"apps":"./a"}`: none, `{"x":tru,"apps":"./a"}`: none,
		`["./m","./a"]`: "1:./m 1:./a", `["./m"]`: "1:./m 0", `[{},"./a"]`: "2 1:./a", `["./m","./a",1]`: none, `["./m",]`: none, `[,]`: none,
		`{"mcpServers":` + deep(126) + `,"apps":"./a"}`: "0 1:./a", `{"mcpServers":` + deep(127) + `,"apps":"./a"}`: none,
		`{"x":` + deep(100000) + `,"apps":"./a"}`: "0 1:./a", `{"x":` + deep(3)[:5] + `,"apps":"./a"}`: none, `{"x":[1 2],"apps":"./a"}`: none,
		`{"x":[{}],"y":{"a":[],"b":{"c":[1,{"d":null}]}},"apps":"./a"}`: "0 1:./a", `{"x":{"a":1,},"apps":"./a"}`: none, `{"x":{"a"},"apps":"./a"}`: none,
	} {
		m := parseManifest(text)
		say := func(d declaration) string {
			if d.kind == named {
				return "1:" + d.path
			}
			return string(rune('0' + d.kind))
		}
		if got := say(m.mcpServers) + " " + say(m.apps); got != want {
			t.Errorf("%.100s: %s, want %s", text, got, want)
		}
	}
}

// Whatever declares something is JSON, and what it declares stays below the
// root.
func FuzzManifest(f *testing.F) {
	for _, seed := range []string{
		`{"mcpServers":"./a","apps":{"x":[1,{"y":"z"}]}}`, `["./a\\b","./\ud83d\ude00"]`, `{"x":"\ud800","y":[[[]]],"apps":"./../a"}`, `{"a":-1.5e+3}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return // is not read
		}
		m := parseManifest(text)
		if m != (manifest{}) && !json.Valid([]byte(text)) {
			t.Errorf("%q declares %+v", text, m)
		}
		root := placeOf(proto.FileURI("/r"), "/r")
		for _, d := range []declaration{m.mcpServers, m.apps} {
			if d.kind != named {
				continue
			}
			at, fault := resolve(root, d.path)
			if fault != "" {
				continue
			}
			u, err := proto.ParseURI(at.uri)
			if err != nil {
				t.Fatalf("%q is at %q: %v", d.path, at.uri, err)
			}
			if path, err := u.Native(); err != nil || path != at.path || path != "/r" && !strings.HasPrefix(path, "/r/") {
				t.Errorf("%q is at %+v, read as %q, %v", d.path, at, path, err)
			}
		}
	})
}
