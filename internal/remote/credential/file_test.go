package credential

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exec-server/exec-server/internal/secret"
)

func TestFile(t *testing.T) {
	path := t.TempDir() + "/token"
	s := File(t.Context(), path)
	if text := wantUnavailable(t, s); !strings.Contains(text, path) {
		t.Error(text)
	}
	write(t, path, "\n one \r\n")
	if got := shown(t, s); got != "Bearer one" {
		t.Error(got)
	}
	write(t, path, "two")
	if got := shown(t, s); got != "Bearer two" {
		t.Error(got)
	}
	for _, bad := range []string{"", " \n", "hunter 2", "hunter\x002", strings.Repeat("hunter2", 3000)} {
		write(t, path, bad)
		if text := wantUnavailable(t, s); strings.Contains(text, "hunter") || !strings.Contains(text, path) {
			t.Error(text)
		}
	}
	write(t, path, strings.Repeat("x", secret.Max))
	shown(t, s)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	wantUnavailable(t, s) // and does not wait for a writer
	if text := wantUnavailable(t, File(t.Context(), t.TempDir())); !strings.Contains(text, "it is a directory") {
		t.Error(text)
	}
	allow(t, s, "https://h.test", true)
	allow(t, s, "http://h.test", false)
}

func TestFileChanges(t *testing.T) {
	path := t.TempDir() + "/token"
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := File(ctx, path)
		synctest.Wait()
		fires := func(what string, want bool) {
			t.Helper()
			ch := s.Changed()
			time.Sleep(pollEvery)
			synctest.Wait()
			if isClosed(ch) != want {
				t.Errorf("%s: fired is %v", what, !want)
			}
		}
		fires("nothing happened", false)
		write(t, path, "one")
		fires("the file came", true)
		fires("nothing happened", false)
		write(t, path, "one")
		fires("the same again", false)
		write(t, path, "two")
		fires("another of the same size", true)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		fires("the file went", true)
		cancel()
		synctest.Wait()
		write(t, path, "three")
		fires("nobody looks any more", false)
	})
}
