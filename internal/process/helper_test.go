package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every wait for something that has to come.
const patience = 20 * time.Second

func sh(script string) Spec {
	return Spec{ID: "p", Argv: []string{"sh", "-c", script}, Cwd: "/", Env: map[string]string{"PATH": os.Getenv("PATH")}}
}

// prints runs a command to its end and returns its output.
func prints(t *testing.T, spec Spec) string {
	t.Helper()
	events, code := start(t, spec).wait(t)
	if code != 0 {
		t.Fatalf("%q exited with %d: %s", spec.Argv, code, output(events, ""))
	}
	return string(output(events, ""))
}

// gate is a fifo that a script waits at with ": <FIFO", until open is called.
type gate string

func newGate(t *testing.T) gate {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate")
	if err := unix.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	return gate(path)
}

func (g gate) open(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(string(g), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}
