package containerd

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/runtime"
)

// A shim is an orphan that comes back to the daemon; it must not stay a zombie.
func TestShimsOfRemovedSandboxesAreReaped(t *testing.T) {
	d := newPlace(t).startDaemon(t)
	image := staticImage(t, d.ctx, d.server.Client())
	for range 3 {
		if err := d.create(t, runtime.Spec{Name: "short", Image: image}).Remove(d.ctx); err != nil {
			t.Fatal(err)
		}
	}
	// Children that somebody waits for are left to them.
	sleep := exec.Command("sleep", "0.1")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for left := zombies(); len(left) > 0; left = zombies() {
		if time.Now().After(deadline) {
			out, _ := exec.Command("ps", "-eo", "pid,ppid,stat,comm").Output()
			t.Fatalf("zombies %v are left:\n%s", left, strings.TrimSpace(string(out)))
		}
		time.Sleep(50 * time.Millisecond)
		if sleep.ProcessState == nil {
			if err := sleep.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
