package cli

import (
	"path/filepath"
	"testing"

	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/testroot"
)

// Who asks for the machine itself does not get a container of the root's server.
func TestRunOnTheHostAsksNoServer(t *testing.T) {
	testroot.Need(t) // for the control socket
	bare(t)
	root := t.TempDir()
	if err := makeStateDir(filepath.Dir(controlSocket(root))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeStateDir(stateDir(root)) })
	server, err := control.Listen(controlSocket(root)) // which answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if out, _ := exec(t, 0, "", "--root", root, "--runtime", "host", "run", "--", "echo", "here"); out != "here\n" {
		t.Errorf("it prints %q", out)
	}
}
