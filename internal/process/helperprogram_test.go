package process

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/exec-server/exec-server/internal/testroot"
)

// The user that a helper runs as cannot read its program, and the descriptors
// that a helper gets are not in the way of what is executed.
func TestAHelperWhoseUserCannotReadIt(t *testing.T) {
	testroot.Need(t)
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "helper")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "sh")
	for _, step := range []error{os.WriteFile(program, shell, 0o700), os.Chmod(program, 0o711), os.Chmod(dir, 0o711)} {
		if step != nil {
			t.Fatal(step)
		}
	}
	id := &Identity{UID: 65534, GID: 65534}
	for _, n := range []int{1, 30} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		files := make([]int, n)
		for i := range files {
			files[i] = int(w.Fd())
		}
		type result struct {
			h   *Helper
			err error
		}
		started := make(chan result, 1)
		id.Go(func() { // as a connection's thread does
			h, err := StartHelper(HelperSpec{Path: program, Argv: []string{"sh", "-c", "echo hello >&3"}, Identity: id, Files: files})
			started <- result{h, err}
		}, func(err error) { started <- result{nil, err} })
		got := <-started
		if got.err != nil {
			t.Fatalf("with %d files: %v", n, got.err)
		}
		_ = w.Close()
		if text, err := io.ReadAll(r); err != nil || string(text) != "hello\n" {
			t.Errorf("with %d files it says %q, %v", n, text, err)
		}
		got.h.End()
		_ = r.Close()
	}
}
