package cli

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// The end of a terminal ends the server in order.
func TestHangup(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("the test runs with nohup")
	}
	bare(t)
	t.Setenv("CODEX_API_KEY", "sk-one")
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // so that it does not end the test
	peer := remotetest.New(t, remotetest.Options{})
	p := start(t, remoteArgs(t, peer)...)
	serves(t, peer, "env")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.ends(0)
	if got := p.err.String(); !strings.Contains(got, `"state":"stopped"`) {
		t.Errorf("the log is %s", got)
	}
}
