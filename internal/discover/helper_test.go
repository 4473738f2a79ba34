package discover

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

// tree is a directory that a shell script has filled. m DIR TEXT PLACE makes a
// manifest, s DIR a skill.
func tree(t *testing.T, script string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "discover") // unlike t.TempDir open to other users
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const functions = `umask 022
		m() { mkdir -p "$1/$3-plugin"; printf %s "$2" >"$1/$3-plugin/plugin.json"; }
		s() { mkdir -p "$1"; printf "${2:-s}" >"$1/SKILL.md"; }
		chmod 755 .; mkdir -p p
		`
	cmd := exec.Command("/bin/sh", "-ec", functions+script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return dir
}

func unconfined(_ *proto.Sandbox, f func()) error { f(); return nil }

// discover asks for URIs and returns the JSON of the answer. $U stands for the
// URI of the directory in both.
func discover(t *testing.T, dir string, roots ...string) string {
	t.Helper()
	base := proto.FileURI(dir).String()
	var list []string
	for _, root := range roots {
		uri, _ := json.Marshal(strings.ReplaceAll(root, "$U", base))
		list = append(list, `{"id":"i","path":`+string(uri)+`}`)
	}
	v, err := proto.Parse([]byte(`{"roots":[` + strings.Join(list, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	requests, err := Decode(v)
	if err != nil {
		t.Fatal(err)
	}
	result, err := Roots(requests, unconfined)
	if err != nil {
		t.Fatal(err)
	}
	out := result.AppendJSON(nil)
	if !json.Valid(out) {
		t.Fatalf("no JSON: %.1000s", out)
	}
	return strings.ReplaceAll(string(out), base, "$U")
}

// answer is the answer for one root, in words: what is empty or null is left
// out.
func answer(t *testing.T, dir, root string) string {
	t.Helper()
	type entry struct{ Path, Contents string }
	var all struct {
		Roots []struct {
			Plugin             *struct{ Manifest, McpConfig, AppsConfig *entry }
			Skills             []struct{ Instructions, Metadata *entry }
			NamespaceManifests []*entry
			Warnings           []string
			Error              string
		}
	}
	if err := json.Unmarshal([]byte(discover(t, dir, root)), &all); err != nil {
		t.Fatal(err)
	}
	var words []string
	say := func(what string, e *entry) {
		if e != nil {
			contents := e.Contents
			if len(contents) > 20 {
				contents = contents[:10] + "..."
			}
			words = append(words, what+" "+strings.TrimPrefix(e.Path, "$U/")+"="+contents)
		}
	}
	r := all.Roots[0]
	if r.Plugin != nil {
		say("plugin", r.Plugin.Manifest)
		say("mcp", r.Plugin.McpConfig)
		say("apps", r.Plugin.AppsConfig)
	}
	for _, s := range r.Skills {
		say("skill", s.Instructions)
		say("meta", s.Metadata)
	}
	for _, n := range r.NamespaceManifests {
		say("ns", n)
	}
	for _, w := range r.Warnings {
		words = append(words, "warning: "+w)
	}
	if r.Error != "" {
		words = append(words, "error: "+r.Error)
	}
	return strings.Join(words, "\n")
}

// lines is the text of a table without its indentation.
func lines(s string) string {
	var out []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

type example struct{ name, script, root, want string }

func check(t *testing.T, examples []example) {
	t.Helper()
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			if e.root == "" {
				e.root = "$U/p"
			}
			if got, want := answer(t, tree(t, e.script), e.root), lines(e.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
