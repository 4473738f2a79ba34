package process

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/testroot"
)

// threadsOf counts the threads of this process by their file-system user.
func threadsOf(t *testing.T) (root, other int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tasks {
		status, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(status), "\nUid:\t")
		line, _, _ := strings.Cut(rest, "\n")
		switch line {
		case "0\t0\t0\t0":
			root++
		case "0\t0\t0\t1000": // real, effective, saved and file-system user
			other++
		default:
			t.Errorf("a thread has the users %q", line)
		}
	}
	return root, other
}

func TestAnIdentityIsOneThreads(t *testing.T) {
	testroot.Need(t)
	id := &Identity{UID: 1000, GID: 1001, Groups: []int{1002, 1003}}
	started, release, done := make(chan *command), make(chan struct{}), make(chan struct{})
	id.Go(func() {
		defer close(done)
		if _, err := os.ReadFile("/etc/shadow"); !os.IsPermission(err) {
			t.Errorf("reading a file of root's: %v", err)
		}
		spec := sh("id -u; id -g; id -G; id -ru; grep CapEff /proc/self/status")
		spec.Identity = id
		started <- start(t, spec)
		<-release
	}, func(err error) {
		defer close(done)
		t.Error(err)
	})
	select {
	case c := <-started:
		events, code := c.wait(t)
		if got := string(output(events, "")); code != 0 || got != "1000\n1001\n1001 1002 1003\n1000\nCapEff:\t0000000000000000\n" {
			t.Errorf("exit code %d, output %q", code, got)
		}
	case <-done:
		return
	}
	if got := prints(t, sh("id -u")); got != "0\n" {
		t.Errorf("a command of ours runs as %s", got)
	}
	threads := runtime.GOMAXPROCS(0) + 8 // more than there are, so that new ones are made
	at, leave := make(chan struct{}), make(chan struct{})
	for range threads {
		go func() {
			runtime.LockOSThread()
			at <- struct{}{}
			<-leave
			runtime.UnlockOSThread()
		}()
	}
	for range threads {
		<-at
	}
	if root, other := threadsOf(t); other != 1 || root < threads {
		t.Errorf("%d threads of root's, %d of the other user's", root, other)
	}
	close(leave)
	close(release)
	<-done
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // a thread's end cannot be waited for
		if _, other := threadsOf(t); other == 0 {
			break
		} else if time.Now().After(end) {
			t.Fatal("the thread outlives its goroutine")
		}
	}
}

// The first thread stands for the process, and it does not end with a goroutine.
func TestAnIdentityIsNeverTheFirstThreads(t *testing.T) {
	testroot.Need(t)
	id := &Identity{UID: 1000, GID: 1000}
	for range 100 {
		thread := make(chan int)
		id.Go(func() { thread <- unix.Gettid() }, func(err error) {
			t.Error(err)
			thread <- 0
		})
		if <-thread == os.Getpid() {
			t.Fatal("it has the first thread")
		}
	}
}

func TestNoIdentityIsOurOwn(t *testing.T) {
	var id *Identity
	uid := make(chan int)
	id.Go(func() { uid <- os.Geteuid() }, func(err error) { t.Error(err) })
	if got := <-uid; got != os.Geteuid() {
		t.Errorf("it has user %d", got)
	}
}

func TestAnIdentityThatCannotBeTakenOnRunsNothing(t *testing.T) {
	testroot.Need(t)
	id := &Identity{UID: 1001, GID: 1001}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: there is no way back
		if _, _, no := unix.RawSyscall(unix.SYS_SETRESUID, 1000, 1000, 1000); no != 0 {
			result <- nil
			return
		}
		result <- id.Assume()
	}()
	if err := <-result; err == nil {
		t.Error("a user without rights became another")
	}
}
