package process

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// awaitFile waits until a file that tells nobody of its changes has one of some
// contents.
func awaitFile(t *testing.T, path string, want ...string) {
	t.Helper()
	var got []byte
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		got, _ = os.ReadFile(path)
		if slices.Contains(want, strings.TrimSpace(string(got))) {
			return
		}
	}
	t.Fatalf("%s has %q, want %q", path, got, want)
}

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		script    string
		code, tty int
	}{
		{"exit 0", 0, 0},
		{"exit 3", 3, 3},
		{"exit 255", 255, 255},
		{"kill -KILL $$", 137, 1},
		{"kill -TERM $$", 143, 1},
		{"kill -SEGV $$", 139, 1},
		{"kill -INT $$", 130, 1},
		{"kill -HUP $$", 129, 1},
		{"exec kill -9 $$", 137, 1},
		{"exit 137", 137, 137},
	} {
		for _, tty := range []bool{false, true} {
			spec, want := sh("ulimit -c 0; "+test.script), test.code
			if spec.TTY = tty; tty {
				want = test.tty
			}
			if _, code := start(t, spec).wait(t); code != want {
				t.Errorf("%q, tty %v: exit code %d, want %d", test.script, tty, code, want)
			}
		}
	}
}

// A child in the background keeps the streams open: the end of the command is
// told at once, that of the streams when it comes.
func TestABackgroundChildDelaysClosedAlone(t *testing.T) {
	g := newGate(t)
	c := start(t, sh("{ : <"+string(g)+"; echo late; } & echo early; exit 5"))
	if code := c.awaitExit(t); code != 5 {
		t.Errorf("exit code %d", code)
	}
	if c.p.Running() {
		t.Error("it is running still")
	}
	select {
	case <-c.closed:
		t.Fatal("it is closed while its streams are open")
	default:
	}
	g.open(t)
	events, _ := c.wait(t)
	exit := at(events, "exited")
	if before, after := output(events[:exit], ""), output(events[exit:], ""); string(before) != "early\n" || string(after) != "late\n" {
		t.Errorf("%q before the exit, %q after", before, after)
	}
}

func TestAChildThatKeepsNoStreamDelaysNothing(t *testing.T) {
	g := newGate(t)
	c := start(t, sh("{ : <"+string(g)+"; } >/dev/null 2>&1 & exit 0"))
	c.wait(t)
	g.open(t)
}

func TestACommandMayCloseItsStreamsBeforeItEnds(t *testing.T) {
	g := newGate(t)
	c := start(t, sh("echo last; exec >&- 2>&-; : <"+string(g)+"; exit 4"))
	c.awaitOutput(t, "last")
	if !c.p.Running() {
		t.Error("it is not running")
	}
	g.open(t)
	if _, code := c.wait(t); code != 4 {
		t.Errorf("exit code %d", code)
	}
}

func TestCommandsDoNotWaitForEachOther(t *testing.T) {
	g := newGate(t)
	slow := start(t, sh(": <"+string(g)))
	for range 50 {
		start(t, sh("exit 0")).wait(t)
	}
	if !slow.p.Running() {
		t.Error("the slow command has ended")
	}
	g.open(t)
	slow.wait(t)
}
