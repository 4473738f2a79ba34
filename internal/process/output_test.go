package process

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// noise returns a file of bytes of all kinds.
func noise(t *testing.T, size int) (path string, data []byte) {
	t.Helper()
	data = make([]byte, size)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	path = filepath.Join(t.TempDir(), "noise")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path, data
}

func TestOutputOfACommandThatExitsAtOnceIsWhole(t *testing.T) {
	path, want := noise(t, 64<<10)
	for range 100 {
		spec := sh("")
		spec.Argv = []string{"cat", path}
		if got := prints(t, spec); got != string(want) {
			t.Fatalf("%d bytes of %d arrived, or others", len(got), len(want))
		}
	}
}

func TestMuchOutputIsExactOnBothStreams(t *testing.T) {
	path, want := noise(t, 1<<20)
	events, code := start(t, sh("cat "+path+" & cat "+path+" >&2; wait; exit 3")).wait(t)
	for _, stream := range []string{"stdout", "stderr"} {
		if got := output(events, stream); !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes of %d, or others", stream, len(got), len(want))
		}
	}
	if code != 3 {
		t.Errorf("exit code %d", code)
	}
}

func TestStreamsAreKeptApart(t *testing.T) {
	events, _ := start(t, sh("echo out; echo err >&2")).wait(t)
	if out, err := output(events, "stdout"), output(events, "stderr"); string(out) != "out\n" || string(err) != "err\n" {
		t.Errorf("stdout %q, stderr %q", out, err)
	}
}

func TestBytesPassUnchanged(t *testing.T) {
	for _, text := range []string{`\360\237\230\200`, `\377\376\000\200`, `\r\n\033[0m`} {
		want := map[string]string{`\360\237\230\200`: "😀", `\377\376\000\200`: "\xff\xfe\x00\x80", `\r\n\033[0m`: "\r\n\x1b[0m"}[text]
		if got := prints(t, sh("printf '"+text+"'")); got != want {
			t.Errorf("%s arrives as %q", text, got)
		}
	}
}

func TestASingleByteIsReportedAtOnce(t *testing.T) {
	g := newGate(t)
	c := start(t, sh("printf 1; : <"+string(g)+"; printf 2"))
	c.awaitOutput(t, "1")
	g.open(t)
	events, _ := c.wait(t)
	if len(events) != 4 {
		t.Errorf("events: %+v", events)
	}
}

func TestOutputOnATerminalIsWhole(t *testing.T) {
	want := strings.Repeat("A", 10239) + "Z"
	spec := sh("printf %s " + want)
	spec.TTY = true
	for i := range 300 {
		events, code := start(t, spec).wait(t)
		if got := string(output(events, "pty")); got != want || code != 0 {
			t.Fatalf("run %d: exit code %d, %d bytes, the last %q", i, code, len(got), got[max(0, len(got)-1):])
		}
	}
}

func TestMuchOutputOnATerminalIsWhole(t *testing.T) {
	spec := sh("seq 1 60000")
	spec.TTY = true
	var want strings.Builder
	for _, line := range strings.Fields(prints(t, sh("seq 1 60000"))) {
		want.WriteString(line + "\r\n")
	}
	if got := prints(t, spec); got != want.String() {
		t.Errorf("%d bytes of %d arrived", len(got), want.Len())
	}
}

func TestASlowReaderBlocksTheCommand(t *testing.T) {
	release := make(chan struct{})
	done := make(chan struct{})
	c := &command{closed: done, news: make(chan struct{})}
	p, err := Start(sh("while :; do echo; done"), Options{
		OutputBytes: 1 << 20,
		Notify:      func(frames []byte) { <-release; c.notify(frames) },
		Closed:      func(*Process) { close(done) },
	})
	if err != nil {
		t.Fatal(err)
	}
	go p.Run()
	defer func() { <-done }()
	defer close(release)
	defer p.Abandon()
	// The pipe fills, and then the command sleeps in the middle of a write.
	awaitFile(t, "/proc/"+itoa(p.PID())+"/wchan", "pipe_write", "anon_pipe_write")
}
