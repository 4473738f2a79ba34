package discover

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

// fill makes n files of that size, DIR/NN/SKILL.md.
func fill(t *testing.T, dir string, n, size int, text byte) {
	t.Helper()
	for i := range n {
		sub := filepath.Join(dir, fmt.Sprintf("%02d", i))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, "SKILL.md"), []byte(strings.Repeat(string(rune(text)), size)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSizeOfAFile(t *testing.T) {
	dir := tree(t, "")
	fill(t, dir+"/p", 1, maxFile, 'x')
	if got, want := answer(t, dir, "$U/p"), "skill p/00/SKILL.md=xxxxxxxxxx..."; got != want {
		t.Errorf("got %s", got)
	}
	fill(t, dir+"/p", 1, maxFile+1, 'x')
	if got, want := answer(t, dir, "$U/p"), "warning: capability file $U/p/00/SKILL.md exceeds the 1048576-byte limit"; got != want {
		t.Errorf("got %s", got)
	}
}

// What does not fit is left out, what comes later and fits is not.
func TestSizeOfARoot(t *testing.T) {
	dir := tree(t, "s p/98; s p/99")
	fill(t, dir+"/p", 18, maxFile-1, 'x')
	const full = "capability root bundle exceeds the 16777216-byte limit"
	r := Root("i", proto.FileURI(dir+"/p"), maxAll)
	if r.size != 16*(maxFile-1)+2 || len(r.skills) != 18 || fmt.Sprint(r.warnings) != fmt.Sprint([]string{full, full}) {
		t.Errorf("%d bytes of %d skills, %q", r.size, len(r.skills), r.warnings)
	}
}

func TestSizeOfAllRoots(t *testing.T) {
	dir := tree(t, "mkdir small; s small/a")
	fill(t, dir+"/p", 16, maxFile, 'x')
	large, small := Request{URI: proto.FileURI(dir + "/p")}, Request{URI: proto.FileURI(dir + "/small")}
	result, err := Roots([]Request{large, large, small, large, large, small}, unconfined)
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	var skills []int
	var warnings []string
	for _, r := range result.(Results) {
		total += r.size
		skills = append(skills, len(r.skills))
		warnings = append(warnings, r.warnings...)
	}
	const full = "[capability roots exceed the 67108864-byte limit together]"
	if total != maxAll-maxFile+2 || fmt.Sprint(skills) != "[16 16 1 16 15 1]" || fmt.Sprint(warnings) != full {
		t.Errorf("%d bytes, skills %v, %q", total, skills, warnings)
	}
}

func TestBoundsOfTheWalk(t *testing.T) {
	const reached = "warning: capability scan reached its traversal limit (root: $U/p)"
	for _, c := range []struct{ script, want string }{
		{"seq -f p/d%g 1 1998 | xargs mkdir; s p/z", "skill p/z/SKILL.md=s"},
		{"seq -f p/d%g 1 1999 | xargs mkdir; s p/z", reached},
		{"seq -f p/f%g 1 19998 | xargs touch; s p/z", "skill p/z/SKILL.md=s"},
		{"seq -f p/f%g 1 19999 | xargs touch; s p/z", reached},
	} {
		if got := answer(t, tree(t, c.script), "$U/p"); got != c.want {
			t.Errorf("%s: %s", c.script, got)
		}
	}
}

// Files are seen with the rights of the thread.
func TestRights(t *testing.T) {
	testroot.Need(t)
	dir := tree(t, `s p/a; s p/b; s p/c; mkdir p/c/agents; chmod 0 p/a p/b/SKILL.md p/c/agents
		m p '{}' .codex; echo >p/.mcp.json; chmod 0 p/.mcp.json; mkdir -p sec/x; chmod 700 sec`)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if _, _, no := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); no != 0 {
			t.Error(no)
		}
		const denied = ": Permission denied (os error 13)\n"
		want := "plugin p/.codex-plugin/plugin.json={}\nskill p/c/SKILL.md=s\nns p/.codex-plugin/plugin.json={}\n" +
			"warning: failed to scan capability path $U/p/a" + denied +
			"warning: failed to scan capability path $U/p/c/agents" + denied +
			"warning: failed to read capability file $U/p/.mcp.json" + denied +
			"warning: failed to read capability file $U/p/b/SKILL.md" + denied +
			"warning: failed to inspect capability file $U/p/c/agents/openai.yaml" + denied
		if got := answer(t, dir, "$U/p") + "\n"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if got := answer(t, dir, "$U/sec/x") + "\n"; got != "error: failed to inspect capability root $U/sec/x"+denied {
			t.Error(got)
		}
	}()
	<-done
}

func TestFilesThatSayTheyAreEmpty(t *testing.T) {
	dir := tree(t, "mkdir p/.codex-plugin; ln -s /proc/sys/kernel/ostype p/.codex-plugin/plugin.json")
	if got := answer(t, dir, "$U/p"); !strings.HasPrefix(got, "plugin p/.codex-plugin/plugin.json=Linux\n") {
		t.Error(got)
	}
}

// What the walk has met may be anything by the time that it is read.
func TestAFifoInPlaceOfAFile(t *testing.T) {
	dir := tree(t, "mkfifo p/f")
	s := &scan{Result: &Result{}, limit: maxAll}
	if f := s.read(placeOf(proto.FileURI(dir+"/p/f"), dir+"/p/f")); f != nil || s.warnings != nil {
		t.Error(f, s.warnings)
	}
}
