package discover

import (
	"fmt"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestTheWholeAnswer(t *testing.T) {
	dir := tree(t, `m p '{"mcpServers":"./mcp.json"}' .codex; echo '{}' >p/mcp.json; s p/a one; mkdir p/a/agents; echo 'x: "1"' >p/a/agents/openai.yaml; s p/b '\377'; mkdir empty; echo >f`)
	const manifest = `{"path":"$U/p/.codex-plugin/plugin.json","contents":"{\"mcpServers\":\"./mcp.json\"}"}`
	const want = `{"roots":[{"id":"i","path":"$U/p","plugin":{"manifest":` + manifest +
		`,"mcpConfig":{"path":"$U/p/mcp.json","contents":"{}\n"},"appsConfig":null},` +
		`"skills":[{"instructions":{"path":"$U/p/a/SKILL.md","contents":"one"},"metadata":{"path":"$U/p/a/agents/openai.yaml","contents":"x: \"1\"\n"}}],` +
		`"namespaceManifests":[` + manifest + `],` +
		`"warnings":["capability file $U/p/b/SKILL.md is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0"],"error":null},` +
		`{"id":"i","path":"$U/empty/","plugin":null,"skills":[],"namespaceManifests":[],"warnings":[],"error":null},` +
		`{"id":"i","path":"$U/f","plugin":null,"skills":[],"namespaceManifests":[],"warnings":[],"error":"capability root $U/f is not a directory"}]}`
	if got := discover(t, dir, "$U/p", "$U/empty/", "$U/f"); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got := discover(t, dir); got != `{"roots":[]}` {
		t.Errorf("no roots: %s", got)
	}
}

func TestRoots(t *testing.T) {
	check(t, []example{
		{"missing", "rmdir p", "", "error: failed to inspect capability root $U/p: No such file or directory (os error 2)"},
		{"below a file", "echo >f", "$U/f/x", "error: failed to inspect capability root $U/f/x: Not a directory (os error 20)"},
		{"fifo", "mkfifo q", "$U/q", "error: capability root $U/q is not a directory"},
		{"device", "", "file:///dev/null", "error: capability root file:///dev/null is not a directory"},
		{"of another system", "", "file:///C:/x", "error: failed to inspect capability root file:///C:/x: 'file:///C:/x' is invalid on 'linux'"},
		{"long name", "", "$U/" + strings.Repeat("n", 256), "error: failed to inspect capability root $U/" + strings.Repeat("n", 256) + ": Filename too long (os error 36)"},
		{"link", "s r; m r man .codex; rmdir p; ln -s r p", "", "plugin p/.codex-plugin/plugin.json=man\nskill p/SKILL.md=s\nns p/.codex-plugin/plugin.json=man"},
		{"dangling link", "rmdir p; ln -s none p", "", "error: failed to inspect capability root $U/p: No such file or directory (os error 2)"},
		{"beyond a link", "s r/x; ln -s r l", "$U/l/x", "skill l/x/SKILL.md=s"},
		{"slash", "s p", "$U/p/", "skill p/SKILL.md=s"},
		{"slashes", "s p", "$U/p//", "skill p//SKILL.md=s"},
		{"escapes", "s p", "$U/%70", "skill %70/SKILL.md=s"},
		{"dots", "s p", "$U/x/../p/.", "skill p/SKILL.md=s"},
		{"escapes above", "m . up .codex", "$U/%70", "ns .codex-plugin/plugin.json=up"},
		{"slashes above", "m p up .codex; mkdir p/q", "$U/p//q", "ns p/.codex-plugin/plugin.json=up"},
	})
}

func TestParams(t *testing.T) {
	many := strings.Repeat(`{"id":"","path":"file:///none"},`, maxRoots)
	for params, want := range map[string]string{
		`null`:                                   "-32602 invalid type: null, expected struct WireCapabilityRootsDiscoverParams",
		`{}`:                                     "-32602 missing field `roots`",
		`{"roots":null}`:                         "-32602 invalid type: null, expected a sequence",
		`{"roots":{}}`:                           "-32602 invalid type: map, expected a sequence",
		`{"roots":[5]}`:                          "-32602 invalid type: number, expected struct WireCapabilityRootDiscoverRequest",
		`{"roots":[{"path":"file:///"}]}`:        "-32602 missing field `id`",
		`{"roots":[{"id":"x"}]}`:                 "-32602 missing field `path`",
		`{"roots":[{"id":5,"path":"file:///"}]}`: "-32602 invalid type: number, expected a string",
		`{"roots":[{"id":"","path":"/tmp"}]}`:    "-32602 invalid URI: relative URL without a base",
		`{"roots":[{"id":"","path":"file:///","sandbox":5}]}`:        "-32602 invalid type: number, expected struct FileSystemSandboxContext",
		`{"roots":[{"id":"","path":"file:///none","sandbox":null}]}`: "",
		`{"roots":[` + many + `{"id":"","path":"file:///none"}]}`:    "-32600 capability root discovery accepts at most 128 roots",
		`{"roots":[` + strings.TrimSuffix(many, ",") + `]}`:          "",
		`{"roots":[` + many + `{"id":""}]}`:                          "-32602 missing field `path`",
	} {
		v, err := proto.Parse([]byte(params))
		if err != nil {
			t.Fatal(params, err)
		}
		list, err := Decode(v)
		if err == nil {
			_, err = Roots(list, unconfined)
		}
		got := ""
		if err != nil {
			e := proto.WireError(err)
			got = fmt.Sprint(e.Code, " ", e.Message)
		}
		if got != want {
			t.Errorf("%.200s: %s, want %s", params, got, want)
		}
	}
}

// A root is looked at inside of its sandbox only.
func TestConfinement(t *testing.T) {
	sandbox := &proto.Sandbox{Restricted: true}
	dir := tree(t, "s p")
	list := []Request{{ID: "a", URI: proto.FileURI(dir), Sandbox: sandbox}, {ID: "b", URI: proto.FileURI(dir)}}
	inside := 0
	confine := func(s *proto.Sandbox, f func()) error {
		if s == sandbox {
			return proto.Invalid("there is no sandbox")
		}
		inside++
		f()
		return nil
	}
	result, err := Roots(list, confine)
	if err != nil || inside != 1 {
		t.Fatal(err, inside)
	}
	out := string(result.AppendJSON(nil))
	first, second, _ := strings.Cut(out, `{"id":"b"`)
	if !strings.Contains(first, `"skills":[]`) || !strings.Contains(first, ": there is no sandbox\"") || !strings.Contains(second, "SKILL.md") {
		t.Error(out)
	}
}

func TestParents(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///":           "",
		"file:///a":          "file:/// /",
		"file:///a/b/":       "file:///a/ /a file:/// /",
		"file:///a//b//":     "file:///a/ /a file:/// /",
		"file:///a/%62/c":    "file:///a/%62/ /a/b file:///a/ /a file:/// /",
		"file:///a%2Fb/c":    "file:///a%2Fb/ /a/b file:///a/ /a file:/// /",
		"file:///%2Fa%2fb":   "file:///a/ /a file:/// /",
		"file:///a%2F../b/c": "file:///a%2F../b/ /b file:///a%2F../ / ",
	} {
		u, err := proto.ParseURI(uri)
		if err != nil {
			t.Fatal(err)
		}
		path, _ := u.Native()
		var got []string
		p, ok := placeOf(u, path).parent()
		for ; ok; p, ok = p.parent() {
			got = append(got, p.uri+"/", p.path)
		}
		if strings.Join(got, " ") != strings.TrimSpace(want) {
			t.Errorf("%s: %s", uri, got)
		}
	}
}
