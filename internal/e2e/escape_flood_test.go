package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/network/testnet"
)

// usage is how many descriptors a process has, and how much of its own memory is
// resident, in KiB.
type usage struct{ files, kib int }

func usageOf(t *testing.T, pid int) (u usage) {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "RssAnon:" {
			u.kib, _ = strconv.Atoi(f[1])
		}
	}
	u.files = len(all)
	return u
}

// peak is the most of both until ended.
func peak(t *testing.T, pid int, ended <-chan struct{}) (most usage) {
	t.Helper()
	last := time.After(time.Minute)
	for {
		now := usageOf(t, pid)
		most = usage{max(most.files, now.files), max(most.kib, now.kib)}
		select {
		case <-ended:
			return most
		case <-last:
			t.Fatal("a flood does not end")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// What an environment does to exhaust the daemon costs that a bounded amount, and
// no other environment its network.
func TestEscapeByExhaustion(t *testing.T) {
	n, config := newInternet(t)
	n.DNS.Set("*.web.example", 0, testnet.Web.String())
	r := newRoot(t, config+profile+"[profile.default.network]\nmode = \"rules\"\n"+
		"[[profile.default.network.rule]]\nallow = [\"web.example\", \"*.web.example\"]\n[[profile.default.network.rule]]\nallow = [\"45.33.32.156\"]\n")
	s := r.serveIn(n)
	h, other := s.connect("/", ""), s.connect("/environments/other", "")
	if got := other.sh("visit http://web.example/"); !strings.HasSuffix(got, "}\nok") {
		t.Fatal(got)
	}
	h.sh("visit http://web.example/")
	before := usageOf(t, s.cmd.Process.Pid)
	for _, flood := range []string{
		"syns 169.254.169.254:80 20000", "syns 93.184.216.34:80 20000", "idle 93.184.216.34:443 3000", "flood 93.184.216.34:80 3000", "syns 45.33.32.156:80 20000",
		"queries 192.0.0.1:53 20000 no", "queries 192.0.0.1:53 20000 web", "datagrams 50000",
	} {
		_, p := h.start("/bin/sh", "-c", "ulimit -n 8192; /bin/escape "+flood)
		most := peak(t, s.cmd.Process.Pid, p.exited)
		t.Logf("%s: %d descriptors, %d KiB; connections tracked: %s", flood, most.files-before.files, most.kib-before.kib, h.sh("cat /proc/sys/net/netfilter/nf_conntrack_count"))
		if most.files-before.files > 8*1024 || most.kib-before.kib > 256<<10 {
			t.Errorf("%s: %d descriptors and %d KiB more", flood, most.files-before.files, most.kib-before.kib)
		}
		if got := other.sh("visit http://web.example/"); !strings.HasSuffix(got, "}\nok") {
			t.Errorf("%s: another environment: %s", flood, got)
		}
	}
	if got := r.policy(0, "--json"); len(got) > 64<<10 {
		t.Errorf("the counters take %d bytes", len(got))
	}
	if size := len(s.logs.String()); size > 64<<10 {
		t.Errorf("the log has %d bytes", size)
	}
}
