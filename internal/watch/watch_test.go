package watch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// patience is how long what has to come may take, quiet how long what must not
// come is waited for.
const (
	patience = 20 * time.Second
	quiet    = 100 * time.Millisecond
)

// scene is a connection's slot and a directory to watch things in.
type scene struct {
	t    *testing.T
	dir  string
	slot Slot
	id   uint64
	sent chan string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, dir: dir, sent: make(chan string, 16)}
	t.Cleanup(s.slot.Close)
	return s
}

func (s *scene) sh(script string) {
	s.t.Helper()
	cmd := exec.Command("/bin/sh", "-ec", script)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// request asks for names below the directory, or URIs.
func (s *scene) request(id uint64, present string, missing ...string) *Request {
	s.t.Helper()
	uri := func(name string) string {
		if !strings.HasPrefix(name, "file:") {
			name = proto.FileURI(filepath.Join(s.dir, name)).String()
		}
		return fmt.Sprintf("%q", name)
	}
	list := make([]string, len(missing))
	for i := range missing {
		list[i] = uri(missing[i])
	}
	text := fmt.Sprintf(`{"watchId":%d,"missing":[%s]}`, id, strings.Join(list, ","))
	if present != "" {
		text = text[:len(text)-1] + `,"present":` + uri(present) + `}`
	}
	v, err := proto.Parse([]byte(text))
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := Decode(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *scene) start(id uint64, present string, missing ...string) *Watch {
	s.t.Helper()
	return s.slot.Start(s.request(id, present, missing...))
}

// watch starts a watch with the next id and runs it.
func (s *scene) watch(present string, missing ...string) bool {
	s.t.Helper()
	s.id++
	w := s.start(s.id, present, missing...)
	if w != nil {
		go w.Run(s.send)
	}
	return w != nil
}

func (s *scene) send(frames []byte) { s.sent <- string(proto.Frame(frames).Body()) }

func (s *scene) notified(id uint64) {
	s.t.Helper()
	want := fmt.Sprintf(`{"method":"fs/missingChanged","params":{"watchId":%d}}`, id)
	select {
	case got := <-s.sent:
		if got != want {
			s.t.Errorf("got %s, want %s", got, want)
		}
	case <-time.After(patience):
		s.t.Errorf("nothing came for %d", id)
	}
}

func (s *scene) silent() {
	s.t.Helper()
	select {
	case got := <-s.sent:
		s.t.Errorf("%s came", got)
	case <-time.After(quiet):
	}
}

func TestWhatEndsAWatch(t *testing.T) {
	for _, c := range []struct {
		name, before, missing, present, act string
		want                                bool
	}{
		{"file", "", "x", "", ">x", true},
		{"directory", "", "x", "", "mkdir x", true},
		{"link", "", "x", "", "ln -s none x", true},
		{"fifo", "", "x", "", "mkfifo x", true},
		{"moved there", ">y", "x", "", "mv y x", true},
		{"there and gone", "", "x", "", ">x; rm x", true},
		{"second of several", "", "x z", "", ">z", true},
		{"in another directory", "mkdir a b", "a/x b/y", "", ">b/y", true},
		{"twice the same", "", "x x", "", ">x", true},
		{"first missing component", "", "p/q/r", "", "mkdir p", true},
		{"tree moved there", "mkdir -p o/q; >o/q/r", "p/q/r", "", "mv o p", true},
		{"other names", "mkdir a; >y", "a/x", "", ">a/xx; >z; rm z; mkdir a/d; echo >>y; chmod 600 y", false},
		{"other name of the parents", "mkdir -p a/b", "a/b/x", "", ">a/x; >x; >b", false},
		{"parent renamed", "mkdir a", "a/x", "", "mv a b", true},
		{"parent removed", "mkdir a", "a/x", "", "rmdir a", true},
		{"parent of the parent renamed", "mkdir -p a/b", "a/b/x", "", "mv a c", true},
		{"parent exchanged", "mkdir -p a/b o/b; >o/b/x", "a/b/x", "", "mv a c; mv o a", true},
		{"parent made accessible", "mkdir -p a/b", "a/b/x", "", "chmod 700 a", true},
		{"present appended to", "echo a >h", "x", "h", "echo b >>h", true},
		{"present rewritten", "echo a >h", "x", "h", "echo b >h", true},
		{"present removed", ">h", "x", "h", "rm h", true},
		{"present renamed", ">h", "x", "h", "mv h i", true},
		{"present replaced", ">h; >i", "x", "h", "mv i h", true},
		{"present chmodded", ">h", "x", "h", "chmod 600 h", true},
		{"present touched", ">h", "x", "h", "touch h", true},
		{"present read", ">h", "x", "h", "cat h; : >>h", false},
		{"parent of present renamed", "mkdir d; >d/h", "x", "d/h", "mv d e", true},
		{"missing beside present", ">h", "x", "h", ">x", true},
		{"present in the directory of others", ">h; >g", "x", "h", "echo >>g", false},
		{"in a present directory", "mkdir h", "x", "h", ">h/k", false},
		{"present directory removed", "mkdir h", "x", "h", "rmdir h", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.sh(c.before)
			if !s.watch(c.present, strings.Fields(c.missing)...) {
				t.Fatal("it does not watch")
			}
			s.sh(c.act)
			if c.want {
				s.notified(1)
				s.sh(">once-more; " + strings.ReplaceAll(c.act, ";", "||:;") + " ||:")
			}
			s.silent()
		})
	}
}

func TestWhatCannotBeWatched(t *testing.T) {
	s := newScene(t)
	s.sh("mkdir d; >here; ln -s none dangling; ln -s d ld; ln -s here lh; >d/h")
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprint("m", i)
	}
	for _, c := range []struct {
		present string
		missing []string
		want    bool
	}{
		{"", []string{"x"}, true},
		{"", nil, false},
		{"", many, false},
		{"", many[1:], true},
		{"", []string{"here"}, false},
		{"", []string{"d"}, false},
		{"", []string{"x", "d"}, false},
		{"", []string{"dangling"}, false},
		{"", []string{"lh"}, false},
		{"", []string{"ld/x"}, false},
		{"", []string{"ld/x/y"}, false},
		{"", []string{"here/x"}, false},
		{"", []string{"file:///"}, false},
		{"", []string{"file:///C:/x"}, false},
		{"", []string{"file://server/x"}, false},
		{"", []string{"x/" + strings.Repeat("n", 255)}, true},
		{"", []string{strings.Repeat("n", 256)}, false},
		{"here", []string{"x"}, true},
		{"d", []string{"x"}, true},
		{"file:///", []string{"x"}, true},
		{"gone", []string{"x"}, false},
		{"x", []string{"x"}, false},
		{"lh", []string{"x"}, false},
		{"ld/h", []string{"x"}, false},
		{"here/h", []string{"x"}, false},
		{"file:///C:/x", []string{"x"}, false},
	} {
		if got := s.watch(c.present, c.missing...); got != c.want {
			t.Errorf("missing %.100q, present %q: watching %v", c.missing, c.present, got)
		}
	}
}

func TestHowManyDirectoriesAreWatched(t *testing.T) {
	s := newScene(t)
	onTheWay := strings.Count(s.dir, "/") + 1 // the root and the directory itself count
	var list []string
	for i := range maxDirectories - onTheWay {
		name := fmt.Sprint("d", i)
		s.sh("mkdir " + name)
		list = append(list, name+"/x")
	}
	s.sh("mkdir more; >more/h")
	if !s.watch("", list...) {
		t.Error("as many as allowed are not watched")
	}
	if s.watch("", append(slices.Clone(list), "more/x")...) {
		t.Error("one more is watched")
	}
	if s.watch("more/h", list...) {
		t.Error("one more is watched, for what is present")
	}
	if !s.watch("more", list...) {
		t.Error("what is present needs no directory that is not watched anyway")
	}
}

func TestOneWatchWithGrowingIDs(t *testing.T) {
	s := newScene(t)
	run := func(id uint64, missing string) bool {
		w := s.start(id, "", missing)
		if w != nil {
			go w.Run(s.send)
		}
		return w != nil
	}
	for _, c := range []struct {
		id      uint64
		missing string
		want    bool
	}{
		{0, "x", false}, {5, "x", true}, {6, "y", true}, {6, "z", false}, {3, "z", false}, {0, "z", false},
	} {
		if got := run(c.id, c.missing); got != c.want {
			t.Errorf("%d: watching %v", c.id, got)
		}
	}
	s.sh(">x")
	s.silent() // 5 has ended
	s.sh(">y")
	s.notified(6) // and is the one still, after those that changed nothing
	if !run(7, "z") || run(8, "x") {
		t.Error("7 and 8")
	}
	s.sh(">z")
	s.silent() // 8 has ended it, though it is none
	if run(8, "w") || !run(1<<64-1, "w") || run(1<<64-1, "v") {
		t.Error("the greatest")
	}
	s.sh(">w")
	s.notified(1<<64 - 1)
}

func TestWhatHappensBeforeRunCounts(t *testing.T) {
	s := newScene(t)
	w := s.start(1, "", "x")
	s.sh(">x; rm x")
	go w.Run(s.send)
	s.notified(1)
}

// Events that the kernel had no room for may have been of any kind.
func TestAFloodDoesNotHideIt(t *testing.T) {
	data, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Skip(err)
	}
	var limit int
	if _, err := fmt.Sscan(string(data), &limit); err != nil || limit > 1<<17 {
		t.Skipf("the queue takes %s events", data)
	}
	s := newScene(t)
	w := s.start(1, "", "x")
	for i := range limit/2 + 8 {
		name := filepath.Join(s.dir, fmt.Sprint(i))
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	s.sh(">x; rm x")
	go w.Run(s.send)
	s.notified(1)
}

func TestCloseEndsTheWatch(t *testing.T) {
	s := newScene(t)
	done := make(chan struct{})
	w := s.start(1, "", "x")
	go func() { w.Run(s.send); close(done) }()
	s.slot.Close()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("Run goes on")
	}
	s.sh(">x")
	s.silent()
	if s.watch("", "y") || s.start(9, "", "z") != nil {
		t.Error("there is a watch after the end")
	}
	if n := instances(t); n != 0 {
		t.Errorf("%d inotify descriptors are left", n)
	}
}

// instances counts the inotify descriptors of this process, of which no other
// test may have any now.
func instances(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, e := range entries {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.Contains(to, "inotify") {
			n++
		}
	}
	return n
}
