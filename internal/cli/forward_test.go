package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// listening starts a server that only listens, and returns its URL.
func listening(t *testing.T) (url string) {
	t.Helper()
	p := start(t, "--runtime", "host", "--root", t.TempDir(), "--listen", "ws://127.0.0.1:0")
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if out := p.out.String(); strings.HasSuffix(out, "\n") {
			return strings.TrimSpace(out)
		}
	}
	t.Fatalf("the server does not listen: %s", p.err)
	return ""
}

func TestForwarding(t *testing.T) {
	bare(t)
	peer := remotetest.New(t, remotetest.Options{})
	p := start(t, append([]string{"forward", "--connect", listening(t), "--registration-bearer-stdin", "--exit-on-stdin-close"}, remoteArgs(t, peer)...)...)
	p.write("tok\n")
	serves(t, peer, "env")
	serves(t, peer, "env")
	if calls := peer.Calls("env", remotetest.Register); len(calls) != 1 || calls[0].Header.Get("Authorization") != "Bearer tok" {
		t.Errorf("the registrations are %+v", calls)
	}
	_ = p.in.Close()
	p.ends(0)
	if p.out.String() != "" {
		t.Errorf("standard output has %q", p.out)
	}
	if strings.Contains(p.err.String(), "cannot be reached") {
		t.Errorf("it warns: %s", p.err)
	}
}

// A server that is not there yet is warned of, and waited for.
func TestForwardingToNobody(t *testing.T) {
	bare(t)
	t.Setenv("CODEX_API_KEY", "sk-one")
	peer := remotetest.New(t, remotetest.Options{})
	p := start(t, append([]string{"forward", "--connect", "ws://127.0.0.1:9"}, remoteArgs(t, peer)...)...)
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if got := p.err.String(); strings.Contains(got, "cannot be reached") && strings.Contains(got, `"state":"connected"`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log is %s", p.err)
		}
	}
	p.stop()
	p.ends(0)
}
