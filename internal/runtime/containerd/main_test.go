package containerd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// testAgent is the stand-in for the agent.
var testAgent []byte

func TestMain(m *testing.M) {
	if ShimMain() || daemonMain() {
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// The shims run this binary too. With the race detector, each would sleep for
	// a second before it exits.
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "agent")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "./testdata/agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the test's agent: %v\n%s", err, out)
		return 1
	}
	if testAgent, err = os.ReadFile(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
