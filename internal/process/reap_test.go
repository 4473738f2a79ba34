package process

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The reaper waits for every child of its process, so that it cannot run inside
// the test itself: the test binary starts once more, and there adopts orphans as
// an init does.
func TestOrphansAreReapedWhileCommandsRun(t *testing.T) {
	spec := Spec{ID: "p", Argv: []string{"/proc/self/exe"}, Cwd: "/", Env: map[string]string{childEnv: "init", "PATH": os.Getenv("PATH")}}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec.Argv[0] = exe
	events, code := start(t, spec).wait(t)
	if text := string(output(events, "")); code != 0 || text != "no zombies\n" {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}

// testInit leaves hundreds of orphans behind and checks what becomes of them.
func testInit() int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Println(err)
		return 1
	}
	go ReapOrphans()
	// A command that nobody asks about stays a zombie, and must hide no others.
	waiting, err := Start(sh("exit 9"), Options{Notify: func([]byte) {}, Closed: func(*Process) {}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	bad := 0
	for worker := range 4 {
		wg.Go(func() {
			for i := range 15 {
				want := worker*15 + i
				code, out, err := runToEnd(sh(fmt.Sprintf("for i in 1 2 3 4; do (setsid true & setsid sh -c 'exit 5' &); done; echo %d; exit %d", want, want)))
				if err != nil || code != want || out != fmt.Sprintf("%d\n", want) {
					mu.Lock()
					bad++
					fmt.Printf("command %d: exit code %d, %q, %v\n", want, code, out, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for end := time.Now().Add(5 * time.Second); len(zombies()) > 1 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if z := zombies(); len(z) != 1 || z[0] != waiting.PID() {
		fmt.Printf("zombies %v, of which %d is ours\n", z, waiting.PID())
		return 1
	}
	waiting.Run()
	if waiting.Running() || waiting.exitCode != 9 {
		fmt.Println("the command that waited has exit code", waiting.exitCode)
		return 1
	}
	children := func() bool { _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); return err != syscall.ECHILD }
	for end := time.Now().Add(5 * time.Second); children(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			fmt.Println("there are children still")
			return 1
		}
	}
	if bad == 0 {
		fmt.Println("no zombies")
	}
	return bad
}

func runToEnd(spec Spec) (code int, out string, err error) {
	c := &command{closed: make(chan struct{}), news: make(chan struct{})}
	p, err := Start(spec, Options{OutputBytes: 1 << 20, Notify: c.notify, Closed: func(*Process) {}})
	if err != nil {
		return 0, "", err
	}
	p.Run()
	r := p.Read(0, 0, false, 0, nil)
	var text strings.Builder
	for _, chunk := range r.Chunks {
		text.Write(chunk.Data)
	}
	return r.ExitCode, text.String(), nil
}
