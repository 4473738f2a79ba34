package testnet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/testroot"
)

// namespaces are the names of an internet's two.
func namespaces(t *testing.T, n *Internet) (names []string) {
	t.Helper()
	for _, s := range []*Space{n.Host, n.World} {
		name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", s.File().Fd()))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// left says what keeps any of the namespaces. Threads take a moment to end.
func left(t *testing.T, names []string) (found []string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if found = kept(t, names); len(found) == 0 {
			return nil
		}
	}
	return found
}

// kept says what keeps any of the namespaces now.
func kept(t *testing.T, names []string) (found []string) {
	t.Helper()
	for _, k := range keepers(t) {
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(k, name) }) {
			found = append(found, k)
		}
	}
	return found
}

// Nothing keeps the namespaces after a test: no descriptor, no thread, no process.
func TestNothingIsLeft(t *testing.T) {
	var names []string
	t.Run("an internet", func(t *testing.T) {
		n := New(t)
		n.Capture(t)
		names = namespaces(t, n)
		cmd := exec.Command("sleep", "1000")
		if err := n.Host.Start(cmd); err != nil {
			t.Fatal(err)
		}
		if found := kept(t, names[:1]); !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, "/task/") }) {
			t.Errorf("a process in a namespace is not found: %v", found)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if found := left(t, names); len(found) > 0 {
		t.Errorf("left: %v", found)
	}
}

// Nor after a process that had no time to remove anything.
func TestNothingIsLeftOfAProcessThatIsKilled(t *testing.T) {
	if os.Getenv("TESTNET_DIES") != "" {
		n := New(t)
		n.Capture(t)
		fmt.Println(strings.Join(namespaces(t, n), " "))
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	testroot.Need(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "TESTNET_DIES=1")
	out, err := cmd.Output()
	line, _, _ := strings.Cut(string(out), "\n")
	names := strings.Fields(line)
	if err == nil || len(names) != 2 || !strings.HasPrefix(names[1], "net:") {
		t.Fatalf("it did not die as it should: %v, %q", err, out)
	}
	if found := left(t, names); len(found) > 0 {
		t.Errorf("left: %v", found)
	}
}

// keepers are the things that keep network namespaces, each behind the name of the one it keeps.
func keepers(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"/proc/[0-9]*/task/*/ns/net", "/proc/self/fd/*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if name, err := os.Readlink(path); err == nil && strings.HasPrefix(name, "net:") {
				all = append(all, name+" by "+path)
			}
		}
	}
	return all
}
