package confine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
)

// try prints whether something can be written.
const try = `try() { if (echo x >"$1") 2>/dev/null; then echo "$1 written"; else echo "$1 refused"; fi; }; `

func TestReadOnly(t *testing.T) {
	asEachUser(t, "echo F >f", func(p place) {
		s := p.files(readAll)
		out, code, denied := p.run(s, "cat f; echo x >g")
		if !strings.HasPrefix(out, "F\n") || !strings.Contains(out, "Read-only file system") || code == 0 || !denied {
			t.Errorf("%d %t %s", code, denied, out)
		}
		p.expect(s, try+"try f; try /tmp/x; try /dev/shm/x; try /dev/null; cat f", "f refused\n/tmp/x refused\n/dev/shm/x written\n/dev/null written\nF\n")
		p.expect(nil, "ls -A", "f\n")
	})
}

func TestWritableRootsAndWhatTheyProtect(t *testing.T) {
	asEachUser(t, "mkdir -p .git sub/.git; echo gitdir >.codex", func(p place) {
		s := p.files(readAll, projects)
		p.expect(s, try+"try f; try .git/f; try .codex; try sub/.git/f; try ../x; rm -rf .git .codex 2>/dev/null; cat .codex; ls -d .git",
			"f written\n.git/f refused\n.codex refused\nsub/.git/f written\n../x refused\ngitdir\n.git\n")
		// What is not there yet must not be made.
		p.expect(s, "mkdir .agents .aws .other 2>/dev/null; ls -A .agents .other; touch .agents/x 2>/dev/null || echo empty", ".agents:\n\n.other:\nempty\n")
		process.Confiner().Sweep()
		p.expect(nil, "ls -A", ".codex\n.git\n.other\nf\nsub\n")
		// An entry of its own says otherwise.
		p.expect(p.files(readAll, projects, sub(".git", "write")), try+"try .git/f", ".git/f written\n")
	})
}

func TestTheMostSpecificEntryCounts(t *testing.T) {
	asEachUser(t, "mkdir -p e/sub d/sub/deep; echo F >d/f; echo G >d/sub/g; echo S >secret; echo K >d/sub/deep/k", func(p place) {
		s := p.files(readAll, p.path("e", "write"), p.path("e/sub", "read"), p.path("d", "deny"), p.path("d/sub", "write"), p.path("d/sub/deep", "deny"), p.path("secret", "deny"))
		p.expect(s, try+"try e/n; try e/sub/n; try d/sub/n; try n; cat d/sub/g; for f in d/f secret d/sub/deep/k; do cat $f 2>/dev/null || echo $f denied; done; ls d 2>/dev/null || echo not listed",
			"e/n written\ne/sub/n refused\nd/sub/n written\nn refused\nG\nd/f denied\nsecret denied\nd/sub/deep/k denied\nnot listed\n")
		// The same path: deny before write before read, in any order.
		p.expect(p.files(p.path("e", "read"), readAll, p.path("e", "write")), try+"try e/m", "e/m written\n")
		p.expect(p.files(p.path("e", "deny"), readAll, p.path("e", "write")), try+"try e/o; ls e 2>&1 | grep -o denied", "e/o refused\ndenied\n")
	})
}

func TestDenied(t *testing.T) {
	asEachUser(t, "mkdir d; echo F >d/f; echo S >s; ln -s s link", func(p place) {
		s := p.files(readAll, p.path("d", "deny"), p.path("s", "deny"))
		p.expect(s, "cat s link d/f; ls d; cd d; chmod 777 d s", `cat: s: Permission denied
cat: link: Permission denied
cat: d/f: Permission denied
ls: cannot open directory 'd': Permission denied
/bin/sh: 1: cd: can't cd to d
chmod: changing permissions of 'd': Read-only file system
chmod: changing permissions of 's': Read-only file system
`)
		// A link to it is no way either.
		p.expect(p.files(readAll, p.path("link", "deny")), "cat s 2>&1 | grep -o denied", "denied\n")
	})
}

func TestWhatIsNotNamedIsNotThere(t *testing.T) {
	asEachUser(t, "mkdir in out; echo I >in/i; echo O >out/o; ln -s ../in/i out/link; ln -s in alias", func(p place) {
		s := p.files(minimal, p.path("in", "read"))
		p.expect(s, try+"cat in/i; cat out/o 2>&1 | grep -o 'No such file.*'; ls -A; try in/x; try ./x; ls /home 2>/dev/null | wc -l; ls -d /usr /etc /proc /dev",
			"I\nNo such file or directory\nin\nin/x refused\n./x refused\n0\n/dev\n/etc\n/proc\n/usr\n")
		p.expect(p.files(minimal, p.path("alias", "write")), try+"try alias/x; cat in/x", "alias/x written\nx\n")
		// Without its working directory a command is in /.
		p.expect(p.files(minimal), "pwd", "/\n")
		// Without a shell there is none.
		out, code, denied := p.run(p.files(p.path("in", "read")), "echo hi")
		if code != 101 || !denied || !strings.Contains(out, "cannot execute /bin/sh in its sandbox: No such file or directory") {
			t.Errorf("%d %t %s", code, denied, out)
		}
	})
}

func TestPatterns(t *testing.T) {
	asEachUser(t, "mkdir -p g/h; for f in a.x b.x .h.x g/a.x g/h/a.x; do echo $f >$f; done; ln -s a.x link.x", func(p place) {
		const script = "for f in a.x b.x .h.x g/a.x g/h/a.x; do cat $f 2>/dev/null; done"
		for pattern, want := range map[string]string{
			"*.x":    "g/a.x\ng/h/a.x\n",
			"g/*":    "a.x\nb.x\n.h.x\ng/h/a.x\n",
			"**/a.x": "b.x\n.h.x\n",
			"?.x":    ".h.x\ng/a.x\ng/h/a.x\n",
			"[ab].x": ".h.x\ng/a.x\ng/h/a.x\n",
			"[!a].x": "a.x\n.h.x\ng/a.x\ng/h/a.x\n",
			"g/**":   "a.x\nb.x\n.h.x\n",
			"**":     "",
			"**/h":   "a.x\nb.x\n.h.x\ng/a.x\ng/h/a.x\n", // directories do not match
			"g/a.x":  "a.x\nb.x\n.h.x\ng/h/a.x\n",
		} {
			p.expect(p.files(readAll, glob(pattern)), script, want)
			p.expect(p.files(readAll, projects, glob(p.dir+"/"+pattern)), script, want)
		}
		shallow := p.files(readAll, glob("**/a.x"))
		shallow.GlobDepth = 1
		p.expect(shallow, script, "b.x\n.h.x\ng/a.x\ng/h/a.x\n")
		for _, pattern := range []string{"{a,b}.x", `a\*`, "*/[x"} { // what cannot be understood is not ignored
			if out, code, denied := p.run(p.files(readAll, glob(pattern)), "echo hi"); code != 1 || !denied || !strings.Contains(out, "cannot enforce the sandbox") {
				t.Errorf("%s: %d %t %s", pattern, code, denied, out)
			}
		}
	})
}

func TestMissingPaths(t *testing.T) {
	asEachUser(t, "true", func(p place) {
		skipped := p.path("s", "deny")
		skipped.Skip = true
		s := p.files(readAll, projects, p.path("a", "deny"), p.path("b/c", "read"), skipped, p.path("w/x", "write"))
		p.expect(s, try+"try a; mkdir -p b/c 2>/dev/null || echo no b; try s; mkdir w; try w/x", "a refused\nno b\ns written\nw/x written\n")
		process.Confiner().Sweep()
		p.expect(nil, "ls -A", "s\nw\n")
	})
}

func TestLinksCannotLeadRulesAstray(t *testing.T) {
	asEachUser(t, "mkdir real; ln -s real .git; echo S >s; ln -s s l", func(p place) {
		for name, s := range map[string]*proto.Sandbox{
			"protected": p.files(readAll, projects),
			"deny":      p.files(readAll, p.path("", "write"), sub(".git", "write"), p.path("l", "deny")),
		} {
			out, code, denied := p.run(s, "echo ran")
			if code != 1 || !denied || !strings.Contains(out, "crosses the writable symbolic link "+p.dir) {
				t.Errorf("%s: %d %t %s", name, code, denied, out)
			}
		}
		// A link to a writable directory is followed.
		p.expect(p.files(readAll, p.path(".git", "write")), try+"try .git/x; try real/y; try z", ".git/x written\nreal/y written\nz refused\n")
	})
}

// Two commands at once share what stands in for missing directories; the end of
// the first must not open the way for the second.
func TestProtectionOutlastsAnotherCommand(t *testing.T) {
	asEachUser(t, "true", func(p place) {
		s := p.files(readAll, projects)
		second := make(chan string)
		go func() {
			out, _, _ := p.run(s, "sleep 2; mkdir .git 2>/dev/null || echo no; rmdir .git 2>/dev/null || echo no; ls -A")
			second <- out
		}()
		time.Sleep(300 * time.Millisecond)
		p.expect(s, "mkdir .git 2>/dev/null || echo no", "no\n")
		process.Confiner().Sweep()
		if entries, err := os.ReadDir(p.dir); err != nil || len(entries) != 4 {
			t.Errorf("while it is needed: %v, %v", entries, err)
		}
		if out := <-second; out != "no\nno\n.agents\n.aws\n.codex\n.git\n" {
			t.Errorf("the second: %s", out)
		}
		process.Confiner().Sweep()
		if entries, err := os.ReadDir(p.dir); err != nil || len(entries) != 0 {
			t.Errorf("it leaves %v, %v", entries, err)
		}
	})
}

func TestTmpDirs(t *testing.T) {
	asEachUser(t, "mkdir t", func(p place) {
		spec := process.Spec{Argv: []string{"/bin/sh", "-c", try + `try "$TMPDIR/x"; f=/tmp/confine-test-$$; try $f | sed s/[0-9]*//g; rm -f $f; try y`}, Cwd: p.dir,
			Env: map[string]string{"PATH": "/usr/bin:/bin", "TMPDIR": filepath.Join(p.dir, "t")}}
		out, _, _ := p.start(p.files(readAll, special("tmpdir", "write"), special("slash_tmp", "write")), spec)
		if want := p.dir + "/t/x written\n/tmp/confine-test- written\ny refused\n"; out != want {
			t.Errorf("%s, want %s", out, want)
		}
	})
}

// The codex client names the protected directories itself, and says that missing
// ones are to be skipped. They are protected all the same, for each command of a
// series.
func TestProtectedDirectoriesThatAreNamedToo(t *testing.T) {
	for _, skip := range []bool{true, false} {
		asEachUser(t, "true", func(p place) {
			entries := []proto.SandboxEntry{readAll, projects}
			for _, name := range []string{".git", ".agents", ".codex", ".aws"} {
				e := sub(name, "read")
				e.Skip = skip
				entries = append(entries, e)
			}
			other := sub("other/deep", "read")
			other.Skip = skip
			s := p.files(append(entries, other)...)
			want := "refused\n.agents\n.aws\n.codex\n.git\n.git\n"
			if !skip {
				want = "refused\n.agents\n.aws\n.codex\n.git\nother\n.git\n"
			}
			for range 5 {
				p.expect(s, "mkdir .git 2>/dev/null && echo made || echo refused; ls -A; ls -d .git/", strings.TrimSuffix(want, ".git\n")+".git/\n")
			}
			process.Confiner().Sweep()
			p.expect(nil, "ls -A", "")
		})
	}
}
