package confine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/confine"
	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
)

// What a command does to permissions must not blind the look at the next one's
// rules, which opens them again.
func TestPermissionsDoNotHideWhatIsProtected(t *testing.T) {
	asEachUser(t, "mkdir -p w/.git w2 d; echo safe >w/.git/config; echo S >d/s; echo K >d/k.env", func(p place) {
		s := p.files(readAll, p.path("w", "write"), p.path("w2", "write"), p.path("d", "write"), p.path("d/s", "deny"), glob("**/*.env"))
		p.run(s, "chmod 000 w d; chmod 555 w2")
		process.Confiner().Sweep()
		out, _, _ := p.run(s, "chmod 755 w w2 d; echo hacked >w/.git/config; mkdir w2/.git && echo made; cat d/s d/k.env")
		if strings.Contains(out, "made") || strings.Contains(out, "S\n") || strings.Contains(out, "K\n") {
			t.Error(out)
		}
		process.Confiner().Sweep()
		p.run(nil, "chmod -R u+rwX w w2 d")
		p.expect(nil, "cat w/.git/config; ls -A w2", "safe\n")
	})
}

func TestWritableDirectoriesStayWhereTheyAre(t *testing.T) {
	asEachUser(t, "mkdir -p outer/ws", func(p place) {
		s := p.files(readAll, p.path("outer", "write"), p.path("outer/ws", "write"))
		p.expect(s, "mv outer/ws outer/ws2 2>/dev/null || echo refused; mkdir -p outer/ws/.git/hooks 2>/dev/null || echo protected; echo x >outer/f; echo x >outer/ws/f; ls outer", "refused\nprotected\nf\nws\n")
	})
}

func TestPatternsSeeAllOrNothingRuns(t *testing.T) {
	asEachUser(t, "mkdir a; echo K >a/k.env", func(p place) {
		s := p.files(readAll, projects, glob("**/*.env"))
		// Deeper than is looked, and longer than a path may be.
		for name, script := range map[string]string{
			"deep": `d=.; for i in $(seq 140); do d=$d/x; done; mkdir -p $d; mv a $d/a; cd $d; cat a/k.env`,
			"long": `python3 -c 'import os
for i in range(25): os.mkdir("0"*200); os.chdir("0"*200)
os.rename("` + p.dir + `/a", "a")'; cat a/k.env`,
		} {
			p.run(s, strings.Replace(script, "cat a/k.env", "", 1))
			out, code, _ := p.run(s, "find . -name k.env -execdir cat {} \\; 2>/dev/null; echo ran")
			if strings.Contains(out, "K\n") || code == 0 {
				t.Errorf("%s: %d %s", name, code, out)
			}
			p.run(nil, "find . -name a -type d -execdir mv {} "+p.dir+"/a \\; 2>/dev/null; rm -rf x 0*; mkdir -p a; echo K >a/k.env")
		}
		client := p.files(readAll, projects, glob("**/*.env"))
		client.GlobDepth = 2 // the client's own bound is no reason to refuse
		p.run(nil, "mkdir -p b/b/b")
		p.expect(client, "cat a/k.env 2>/dev/null || echo denied", "denied\n")
	})
}

func TestWhatAGitFilePointsToIsProtected(t *testing.T) {
	asEachUser(t, "mkdir realgit; echo safe >realgit/config; echo gitdir: realgit >.git", func(p place) {
		p.expect(p.files(readAll, projects), try+"try .git; try realgit/config; try f; cat realgit/config", ".git refused\nrealgit/config refused\nf written\nsafe\n")
	})
}

func TestAPlantedLinkGrantsNothing(t *testing.T) {
	asEachUser(t, "mkdir w out; ln -s ../out w/tmp", func(p place) {
		spec := process.Spec{Argv: []string{"/bin/sh", "-c", try + "try w/f; try out/x; try w/tmp/y"}, Cwd: p.dir,
			Env: map[string]string{"PATH": "/usr/bin:/bin", "TMPDIR": filepath.Join(p.dir, "w/tmp")}}
		out, _, _ := p.start(p.files(readAll, p.path("w", "write"), special("tmpdir", "write")), spec)
		if out != "w/f written\nout/x refused\nw/tmp/y refused\n" {
			t.Error(out)
		}
	})
}

// Once somebody has made a project of it, what stood in for a directory is that.
func TestAMarkerThatIsFilledIsReal(t *testing.T) {
	asEachUser(t, "true", func(p place) {
		s := p.files(readAll, projects)
		done := make(chan struct{})
		go func() { defer close(done); p.run(s, "sleep 1") }()
		for entries := 0; entries < 4; {
			list, _ := os.ReadDir(p.dir)
			entries = len(list)
		}
		p.run(nil, "echo real >.git/config")
		p.expect(s, "cat .git/config; (echo x >.git/config) 2>/dev/null || echo refused", "real\nrefused\n")
		<-done
		process.Confiner().Sweep()
		p.expect(nil, "ls -A; cat .git/config", ".git\nreal\n")
	})
}

func TestTheMachinesSettingsAreReadOnly(t *testing.T) {
	asEachUser(t, "true", func(p place) {
		for _, s := range []*proto.Sandbox{p.files(readAll), p.files(minimal), p.files(special("root", "write"), p.path("x", "read"))} {
			p.expect(s, `v=$(cat /proc/sys/kernel/core_pattern); (echo "$v" >/proc/sys/kernel/core_pattern) 2>/dev/null || echo refused; (echo h >/proc/sysrq-trigger) 2>/dev/null || echo refused; echo 5 >/proc/self/oom_score_adj && echo own`,
				"refused\nrefused\nown\n")
		}
	})
}

// File work has no /proc: that of its thread would lead out.
func TestFileWorkDoesNotLeaveThroughProc(t *testing.T) {
	asEachUser(t, "mkdir .git; echo S >secret; ln -s /proc/self/root$PWD/.git/config link", func(p place) {
		policy, err := confine.Resolve(p.files(readAll, projects, p.path("secret", "deny")), confine.Context{})
		if err != nil {
			t.Fatal(err)
		}
		for _, root := range []string{"/proc/self/root", "/proc/thread-self/root", "/proc/1/root", "/proc/self/cwd/../../..", "/proc/self/task/1/root"} {
			err := process.Confiner().Files(confine.Job{Policy: policy, User: p.id}, func() error {
				_ = os.WriteFile(p.dir+"/link", []byte("x"), 0o600)
				if text, err := os.ReadFile(root + p.dir + "/secret"); err == nil {
					t.Errorf("%s: the secret is %q", root, text)
				}
				return os.WriteFile(root+p.dir+"/.git/config", []byte("x"), 0o600)
			})
			if err == nil {
				t.Errorf("%s leads out", root)
			}
		}
		process.Confiner().Sweep()
		p.expect(nil, "ls -A .git", "")
	})
}

// What a profile or a file names is no reason to make anything where the user
// could not.
func TestNothingIsMadeBeyondTheUsersRights(t *testing.T) {
	asEachUser(t, "mkdir w; echo gitdir: $PWD/roots/missing >w/.git", func(p place) {
		roots := filepath.Join(p.dir, "roots")
		if err := os.Mkdir(roots, 0o755); err != nil {
			t.Fatal(err)
		}
		s := p.files(special("root", "write"), p.path("w", "write"), p.path("roots/named", "read"), p.path("roots/dir/deep", "deny"), p.path("roots", "write"))
		done := make(chan struct{})
		go func() { defer close(done); p.run(s, "sleep 0.5") }()
		seen := map[string]bool{}
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			list, _ := os.ReadDir(roots)
			for _, e := range list {
				seen[e.Name()] = true
			}
		}
		if p.id != nil && len(seen) > 0 || seen["missing"] {
			t.Errorf("made were %v", seen)
		}
	})
}

// A root that is named by a link shows no more than by its name.
func TestAliasesShowWhatTheyLeadTo(t *testing.T) {
	asEachUser(t, "mkdir w w/.git; echo S >w/.env; echo safe >w/.git/config; ln -s w alias", func(p place) {
		s := p.files(minimal, p.path("alias", "write"), p.path("w/.env", "deny"), glob("**/*.key"))
		p.expect(s, try+"cat alias/.env w/.env 2>/dev/null || echo denied; try alias/.git/config; mkdir alias/.aws/x 2>/dev/null || echo refused; try alias/f; cat w/f",
			"denied\nalias/.git/config refused\nrefused\nalias/f written\nx\n")
		p.expect(nil, "cat w/.git/config", "safe\n")
	})
}

func TestLinksInTheMiddleOfChains(t *testing.T) {
	asEachUser(t, "mkdir -p ws out real safe conf; echo K >real/k.env; echo S >safe/s; ln -s ws/l data; ln -s ../out ws/l; ln -s ws/m secret; ln -s ../safe ws/m; ln -s ../real ws/conf", func(p place) {
		p.expect(p.files(readAll, p.path("ws", "write"), p.path("data", "write")), try+"try ws/f; try data/x; try out/y", "ws/f written\ndata/x refused\nout/y refused\n")
		for _, s := range []*proto.Sandbox{
			p.files(readAll, p.path("ws", "write"), p.path("secret/s", "deny")),
			p.files(readAll, p.path("ws", "write"), glob("ws/conf/*.env")),
		} {
			if out, code, denied := p.run(s, "echo ran"); code != 1 || !denied || !strings.Contains(out, "crosses the writable symbolic link") {
				t.Errorf("%d %t %s", code, denied, out)
			}
		}
	})
}

func TestOddGitFiles(t *testing.T) {
	asEachUser(t, "mkdir w; mkdir fifo && mkfifo fifo/.git; mkdir nul && printf 'gitdir: a\\0b' >nul/.git; mkdir self && echo gitdir: .git >self/.git; mkdir none && : >none/.git", func(p place) {
		for _, dir := range []string{"fifo", "nul", "self", "none"} {
			p.expect(p.files(readAll, p.path(dir, "write")), try+"try "+dir+"/f; (: 1<>"+dir+"/.git; rm "+dir+"/.git) 2>/dev/null || echo kept", dir+"/f written\nkept\n")
		}
	})
}

func TestEveryEntryMustSkip(t *testing.T) {
	asEachUser(t, "true", func(p place) {
		skip := p.path("x", "read")
		skip.Skip = true
		for _, s := range []*proto.Sandbox{p.files(readAll, projects, p.path("x", "deny"), skip), p.files(readAll, projects, skip, p.path("x", "deny"))} {
			p.expect(s, try+"try x", "x refused\n")
		}
	})
}
