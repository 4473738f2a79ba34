package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network/testnet"
)

// agentOf is the agent's process, of the only container of a root.
func agentOf(t *testing.T, r *root) string {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, path := range all {
		text, _ := os.ReadFile(path)
		dir := filepath.Dir(path)
		status, _ := os.ReadFile(dir + "/status")
		for line := range strings.Lines(string(status)) {
			if f := strings.Fields(line); strings.Contains(string(text), r.cgroup()+"/e-") && len(f) == 3 && f[0] == "NSpid:" && f[2] == "1" {
				return filepath.Base(dir)
			}
		}
	}
	t.Fatal("the agent was not found")
	return ""
}

// Who has taken the agent over has every capability in the container's namespaces. With
// that rules and interfaces can be changed, and what leads to the daemon reached past
// them, and nothing else: it decides again.
func TestEscapeByTheAgent(t *testing.T) {
	n, config := newInternet(t)
	came := hostServices(t, n, "7777")
	packets := n.Capture(t)
	for _, mode := range []string{"none", "open"} {
		r := newRoot(t, config+profile+"[profile.default.network]\nmode = \""+mode+"\"\n[[profile.default.network.rule]]\ndeny = [\"151.101.0.0/16\"]\n")
		h := r.serveIn(n).connect("/", "")
		h.sh("true")
		pid := agentOf(t, r)
		try := func(ways ...string) string {
			t.Helper()
			args := []string{"-t", pid, "-U", "-n", "--", filepath.Join(filepath.Dir(bin), "escape")}
			for i, way := range ways {
				if i > 0 {
					args = append(args, "+")
				}
				args = append(args, strings.Fields(way)...)
			}
			out, err := exec.Command("nsenter", args...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			return string(out)
		}
		denied := []string{"tcp 169.254.169.254:80", "tcp 10.99.0.2:7777", "tcp 84.32.10.2:7777", "tcp 127.0.0.1:7777", "tcp 151.101.0.223:80", "tcp 10.99.0.1:80", "tcp 192.0.0.1:63080"}
		// With what is there, without it, and with rules of one's own.
		for _, first := range []string{"abstract", "conntrack", "flush", "seize"} {
			some := denied
			if first == "flush" {
				some = denied[:1] // without rules they hang
			}
			out := try(append([]string{first}, some...)...)
			if _, out, _ = strings.Cut(out, "\n"); strings.Contains(out, "out: ") {
				t.Errorf("mode %s, with %s: %s", mode, first, out)
			}
			nothingLeft(t, packets)
		}
		out := try("setns", "sysctl", "link", "address", "route", "newnet", "queue", "tcp 169.254.169.254:80", "udp 1.1.1.1:443", "udp 10.99.0.1:5000", "icmp 1.1.1.1", "forge syn 10.99.0.2 1.1.1.1:80")
		if !strings.HasPrefix(out, "\"setns\": permission denied\n") {
			t.Errorf("mode %s: the host's namespace: %s", mode, out)
		}
		nothingLeft(t, packets)
		if got := try("seize", "tcp "+testnet.Web.String()+":80"); strings.Contains(got, "HTTP/1.0 200") != (mode == "open") {
			t.Errorf("mode %s: what is allowed: %s", mode, got)
		}
		packets.Forget()
		if got := h.sh("echo alive"); got != "alive" {
			t.Errorf("commands say %q", got)
		}
	}
	if came.Load() > 0 {
		t.Errorf("the host's services were reached %d times", came.Load())
	}
}
