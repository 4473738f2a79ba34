package confine

import (
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

func entry(kind, access string) proto.SandboxEntry {
	return proto.SandboxEntry{Kind: kind, Access: access}
}

func TestWhichPoliciesNeedWhat(t *testing.T) {
	root := []proto.URI{proto.FileURI("/w")}
	narrowed := proto.SandboxEntry{Kind: "path", Path: proto.FileURI("/w/x"), Access: "read"}
	for _, test := range []struct {
		name                            string
		s                               proto.Sandbox
		unconfined, readsAll, writesAll bool
	}{
		{"disabled", proto.Sandbox{Network: true}, true, true, true},
		{"offline", proto.Sandbox{}, false, true, true},
		{"read only", proto.Sandbox{Restricted: true, Entries: []proto.SandboxEntry{entry("root", "read")}}, false, true, false},
		{"root written", proto.Sandbox{Network: true, Restricted: true, Entries: []proto.SandboxEntry{entry("root", "write"), entry("project_roots", "write")}, Roots: root}, true, true, true},
		{"root written but for", proto.Sandbox{Network: true, Restricted: true, Entries: []proto.SandboxEntry{entry("root", "write"), narrowed}}, false, true, false},
		{"root read but for", proto.Sandbox{Network: true, Restricted: true, Entries: []proto.SandboxEntry{entry("root", "read"), entry("slash_tmp", "deny")}}, false, false, false},
		{"root denied", proto.Sandbox{Network: true, Restricted: true, Entries: []proto.SandboxEntry{entry("root", "write"), entry("root", "deny")}}, false, false, false},
		{"pattern", proto.Sandbox{Network: true, Restricted: true, Entries: []proto.SandboxEntry{entry("root", "write"), {Kind: "glob_pattern", Pattern: "*", Access: "deny"}}}, false, false, false},
		{"nothing", proto.Sandbox{Network: true, Restricted: true}, false, false, false},
		{"unknown", proto.Sandbox{Network: true, Restricted: true, Entries: []proto.SandboxEntry{entry("unknown", "write")}}, false, false, false},
	} {
		p, err := Resolve(&test.s, Context{Cwd: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		if p.Unconfined() != test.unconfined || p.ReadsAll() != test.readsAll || p.WritesAll() != test.writesAll {
			t.Errorf("%s: unconfined %t, reads all %t, writes all %t", test.name, p.Unconfined(), p.ReadsAll(), p.WritesAll())
		}
	}
}

func TestSubpathsStayInsideTheirRoots(t *testing.T) {
	for sub, want := range map[string]bool{"": true, "a": true, "a/../b": true, "../w/x": true, "..": false, "../x": false, "/etc": false, "a/../../etc": false} {
		p, err := Resolve(&proto.Sandbox{Restricted: true, Roots: []proto.URI{proto.FileURI("/w")},
			Entries: []proto.SandboxEntry{{Kind: "project_roots", Subpath: sub, Access: "write"}}}, Context{})
		if err != nil || (len(p.paths) == 1) != want {
			t.Errorf("%q: %v, %v", sub, p.paths, err)
		}
	}
}

// A profile decides what a command may reach: whatever it is, it must resolve to
// something, in time, that opens nothing which it does not name.
func FuzzProfile(f *testing.F) {
	for _, seed := range []string{
		`{"permissions":{"type":"disabled"},"windowsSandboxLevel":"disabled"}`,
		`{"permissions":{"type":"managed","file_system":{"type":"restricted","entries":[{"path":{"type":"special","value":{"kind":"root"}},"access":"read"},{"path":{"type":"special","value":{"kind":"project_roots","subpath":".git"}},"access":"read","missing_path_behavior":"skip"},{"path":{"type":"glob_pattern","pattern":"**/*.env"},"access":"deny"},{"path":{"type":"path","path":"file:///a"},"access":"write"}],"glob_scan_max_depth":2},"network":"restricted"},"windowsSandboxLevel":"disabled","policyContext":{"cwd":"file:///w","workspaceRoots":["file:///w"]}}`,
		`{"permissions":{"type":"external","network":"enabled"},"windowsSandboxLevel":"mxc","cwd":"file:///C:/x","useLegacyLandlock":true}`,
	} {
		f.Add(seed, "/w", "/t")
	}
	f.Fuzz(func(t *testing.T, text, cwd, tmp string) {
		m, err := proto.ParseMessage([]byte(`{"id":1,"method":"m","params":{"sandbox":` + text + `}}`))
		if err != nil || m.Kind != proto.Request {
			return
		}
		params := proto.ParamsOf(m.Params, "Fuzz")
		s := params.SandboxParam()
		if s == nil || params.Err() != nil {
			return
		}
		p, err := Resolve(s, Context{Cwd: cwd, TmpDir: tmp})
		if err != nil {
			return
		}
		if !strings.Contains(text, "write") && s.Restricted && p.WritesAll() {
			t.Errorf("writes all by %s", text)
		}
		for at := range p.paths {
			if !strings.HasPrefix(at, "/") {
				t.Errorf("%q by %s", at, text)
			}
		}
		for _, pattern := range p.globs {
			if g, err := parseGlob(pattern); err == nil {
				g.match([]string{"a", "b", "a.env"})
			}
		}
	})
}
