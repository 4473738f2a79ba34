package process

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// childEnv names the part of the test binary that is to run as a process of its
// own.
const childEnv = "PROCESS_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "init" {
		os.Exit(testInit())
	}
	// What is made once and stays is made before counting.
	shedInheritedOnce()
	if r, w, err := os.Pipe(); err == nil {
		_, _ = r.Close(), w.Close()
	}
	before := resources()
	code := m.Run()
	if code == 0 {
		if left := awaitResources(before); left != before {
			fmt.Printf("leak: %+v before the tests, %+v after\n", before, left)
			code = 1
		}
	}
	os.Exit(code)
}

// usage counts what a command takes in our process while it runs.
type usage struct{ files, goroutines, children int }

func resources() usage {
	fds, _ := os.ReadDir("/proc/self/fd")
	children.mu.Lock()
	defer children.mu.Unlock()
	return usage{len(fds), runtime.NumGoroutine(), len(children.pids)}
}

// awaitResources waits until no more is in use than before.
func awaitResources(before usage) (now usage) {
	for range 500 {
		now = resources()
		if now.files <= before.files && now.goroutines <= before.goroutines && now.children <= before.children {
			return before
		}
		time.Sleep(10 * time.Millisecond) // goroutines tell nobody that they end
	}
	return now
}

func TestCommandsLeaveNothingBehind(t *testing.T) {
	before := resources()
	for i := range 200 {
		spec := sh("echo out; echo err >&2")
		switch i % 5 {
		case 1:
			spec.TTY = true
		case 2:
			spec = sh("exec cat")
			spec.PipeStdin = true
		case 3:
			spec.Argv = []string{"/nonexistent"}
			spec.TTY = i%2 == 0
			if _, err := Start(spec, Options{}); err == nil {
				t.Fatal("a missing program was started")
			}
			continue
		case 4:
			spec = sh("sleep 1000 & wait")
		}
		c := start(t, spec)
		switch i % 5 {
		case 2:
			c.write(t, "1", make([]byte, 200000))
			c.p.CloseStdin()
		case 4:
			c.p.Terminate()
		}
		c.wait(t)
	}
	if left := awaitResources(before); left != before {
		t.Errorf("%+v in use before, %+v after", before, left)
	}
}
