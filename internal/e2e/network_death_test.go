package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

// While there is no daemon nothing passes, whatever the policy was, and with the next
// one everything does that did before.
func TestNothingPassesWithoutTheDaemon(t *testing.T) {
	b := withPolicy(t, rules.Policy{Mode: rules.Open})
	workspace := filepath.Join(b.root.dir, "root", "environments", "default", "workspace")
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(workspace, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	events := b.n.Web.Events("x")
	b.sh("cd /workspace; touch tries; visit http://" + testnet.Web.String() + "/events/x >open 2>&1 & " +
		"while :; do for to in tcp:" + testnet.Web.String() + ":80 udp:" + testnet.Web.String() + ":443 ping:" + testnet.Web.String() +
		" tcp:[" + testnet.Web6.String() + "]:80; do PATIENCE=200ms probe ${to%%:*} ${to#*:} >>/workspace/tries; done; sleep 0.1; done >/dev/null 2>&1 &")
	events <- "first"
	eventually(t, "an event and a connection", func() bool {
		return strings.Contains(read("open"), "first") && strings.Contains(read("tries"), "ok")
	})
	b.server.stop(syscall.SIGKILL)
	eventually(t, "the end of what was open", func() bool { return !strings.HasSuffix(read("open"), "first\n\n") })
	b.seen.Forget()
	begin := len(read("tries"))
	var since string
	eventually(t, "further tries", func() bool { since = read("tries")[begin:]; return strings.Count(since, "\n") > 12 })
	if _, after, _ := strings.Cut(since, "\n"); strings.Contains(after, "ok") {
		t.Errorf("without a daemon: %q", after)
	}
	for _, p := range b.seen.Packets() {
		if p.SYN || p.Protocol != "tcp" { // the kernel may still end what was open
			t.Errorf("there left %v", p)
		}
	}

	s := b.root.serveIn(b.n)
	begun, begin := time.Now(), len(read("tries"))
	eventually(t, "a connection through the next daemon", func() bool { return strings.Contains(read("tries")[begin:], "ok") })
	t.Logf("the first connection is made %v after the daemon is there", time.Since(begun).Round(time.Millisecond))
	expect(t, "the session", s.connect("/", b.session).sh("echo alive"), "alive")
}
