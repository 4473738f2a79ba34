package confine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/confine"
	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

// user is who commands of these tests run as: root, and somebody else.
var users = map[string]*process.Identity{"root": nil, "another": {UID: 4321, GID: 4322}}

// place is a directory with some files, for one user.
type place struct {
	t   *testing.T
	dir string
	id  *process.Identity
}

// asEachUser runs a test for each user, in a directory that is theirs. The files
// are made by a shell.
func asEachUser(t *testing.T, setup string, test func(p place)) {
	testroot.Need(t)
	for name, id := range users {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/var/tmp", "confine")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if id != nil {
				if err := os.Chown(dir, id.UID, id.GID); err != nil {
					t.Fatal(err)
				}
			}
			p := place{t, dir, id}
			if out, code, _ := p.run(nil, setup); code != 0 {
				t.Fatalf("setup: %d %s", code, out)
			}
			test(p)
		})
	}
}

// run runs a script in the place under a profile, which may be nil, and returns
// what it printed to both streams.
func (p place) run(s *proto.Sandbox, script string) (out string, code int, denied bool) {
	p.t.Helper()
	return p.start(s, process.Spec{Argv: []string{"/bin/sh", "-c", script}, Cwd: p.dir})
}

func (p place) start(s *proto.Sandbox, spec process.Spec) (out string, code int, denied bool) {
	p.t.Helper()
	spec.ID, spec.Identity, spec.Home = "p", p.id, "/"
	if spec.Env == nil {
		spec.Env = map[string]string{"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C"}
	}
	if s != nil {
		policy, err := confine.Resolve(s, confine.Context{Cwd: spec.Cwd, TmpDir: spec.Env["TMPDIR"]})
		if err != nil {
			p.t.Fatal(err)
		}
		if !policy.Unconfined() {
			spec.Confine = policy
		}
	}
	proc, err := process.Start(spec, process.Options{OutputBytes: 1 << 20, Notify: func([]byte) {}, Closed: func(*process.Process) {}})
	if err != nil {
		p.t.Fatal(err)
	}
	proc.Run()
	r := proc.Read(0, 0, false, 0, nil)
	var text strings.Builder
	for _, c := range r.Chunks {
		text.Write(c.Data)
	}
	return text.String(), r.ExitCode, r.Denied
}

// expect runs a script and compares what it prints.
func (p place) expect(s *proto.Sandbox, script, want string) {
	p.t.Helper()
	if got, _, _ := p.run(s, script); got != want {
		p.t.Errorf("%s\nprints:\n%s\nwant:\n%s", script, got, want)
	}
}

// files restricts files to entries and takes the network away.
func (p place) files(entries ...proto.SandboxEntry) *proto.Sandbox {
	return &proto.Sandbox{Restricted: true, Entries: entries, Roots: []proto.URI{proto.FileURI(p.dir)}}
}

func special(kind, access string) proto.SandboxEntry {
	return proto.SandboxEntry{Kind: kind, Access: access}
}

func sub(path, access string) proto.SandboxEntry {
	return proto.SandboxEntry{Kind: "project_roots", Subpath: path, Access: access}
}

func glob(pattern string) proto.SandboxEntry {
	return proto.SandboxEntry{Kind: "glob_pattern", Pattern: pattern, Access: "deny"}
}

func (p place) path(name, access string) proto.SandboxEntry {
	return proto.SandboxEntry{Kind: "path", Path: proto.FileURI(filepath.Join(p.dir, name)), Access: access}
}

var (
	readAll  = special("root", "read")
	projects = special("project_roots", "write")
	minimal  = special("minimal", "read")
)
