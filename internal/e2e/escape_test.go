package e2e

import (
	"io"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/exec-server/exec-server/internal/network/testnet"
)

// escapes are tries to get out, as testdata/escape knows them, and what is to come of
// each: a regular expression for its line.
type escapes map[string]string

// try runs all of them at once, in one command, which has some more parameters.
func (e escapes) try(t *testing.T, h *harness, more map[string]any) {
	t.Helper()
	var order []string
	for way := range e {
		order = append(order, way)
	}
	out, _ := h.finish(more, "/bin/escape at-once "+strings.Join(order, " + ")+" 2>&1")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != len(order) {
		t.Fatalf("%d lines for %d tries: %s", len(lines), len(order), out)
	}
	for i, way := range order {
		if !regexp.MustCompile("\": (" + e[way] + ")$").MatchString(lines[i]) {
			t.Errorf("%s, want %s", lines[i], e[way])
		}
	}
}

// nothingLeft is that no packet has left the host but for the name server and those
// addresses.
func nothingLeft(t *testing.T, c *testnet.Capture, allowed ...netip.Addr) {
	t.Helper()
packets:
	for _, p := range c.Packets() {
		for _, a := range append(allowed, testnet.Resolver.Addr()) {
			if p.To.Addr() == a {
				continue packets
			}
		}
		t.Errorf("a packet got out: %v", p)
	}
	c.Forget()
}

// hostServices listens on a port of all addresses of the host, and counts who comes.
func hostServices(t *testing.T, n *testnet.Internet, port string) *atomic.Int64 {
	t.Helper()
	l, err := n.Host.Listen("tcp", ":"+port)
	if err != nil {
		t.Fatal(err)
	}
	var came atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			_, _ = io.WriteString(c, "HTTP/1.0 200 the host\r\n\r\n")
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return &came
}

const (
	refusedAtOnce = "connection refused"
	notPermitted  = "operation not permitted"
)

// special are addresses that are denied in every mode, in their disguises. The host
// listens on port 7777 of its own.
var special = []string{
	"169.254.169.254:80", "169.254.170.2:80", "100.100.100.200:80", "168.63.129.16:80",
	"[fd00:ec2::254]:80", "[fd20:ce::254]:80", "[::ffff:169.254.169.254]:80", "[64:ff9b::a9fe:a9fe]:80",
	"[64:ff9b:1::a9fe:a9fe]:80", "[2002:a9fe:a9fe::1]:80", "[::169.254.169.254]:80", "[::ffff:0:169.254.169.254]:80",
	"10.99.0.1:80", "10.99.0.2:7777", "84.32.10.2:7777", "[::ffff:84.32.10.2]:7777", "[2a01:4f8:c17::2]:7777", "[2002:5420:a02::]:7777",
	"[64:ff9b::84.32.10.2]:7777", "[64:ff9b::10.99.0.2]:7777", "192.168.0.1:80", "172.17.0.1:80", "100.64.0.1:80",
	"[fd00::1]:80", "[fec0::1]:80", "240.0.0.1:80", "[2001:0:5420:a02::1]:80", "192.0.0.3:80",
	"127.0.0.1:7777", "[::1]:7777", "0.0.0.0:7777", "127.9.9.9:7777", "[::ffff:127.0.0.1]:7777", // which are the sandbox's own
	"192.0.0.2:7777", "192.0.0.1:7777",
}

// kernel are ways by what the kernel offers, for the image's root or another user.
func kernel(root bool) escapes {
	e := escapes{
		"vsock": notPermitted, "uring": notPermitted, "tun": notPermitted, "newnet": notPermitted, "setns": "permission denied",
		"sysctl": "read-only file system", "route": notPermitted, "address": notPermitted, "link": notPermitted,
		"flush": notPermitted, "queue": notPermitted, "conntrack": notPermitted, "abstract": "none",
		"unix /run/exec-server/io/agent.sock": "permission denied",
		// Unix, IPv4, IPv6, netlink
		"families": "out: 1 2 10 16",
	}
	if root {
		// packets, and XDP: of the namespace's loopback
		e["families"] = "out: 1 2 10 16 17 44"
		e["unix /run/exec-server/io/agent.sock"] = "connection reset by peer|broken pipe"
	}
	return e
}

// forged are packets that a program makes by hand, to an address that nobody allows.
func forged(to string) escapes {
	e := escapes{}
	for _, kind := range []string{"udp", "syn", "ack", "rst", "fin", "none", "synrst", "synfin", "xmas"} {
		for _, from := range []string{"192.0.0.2", "127.0.0.1", "10.99.0.2", "192.0.0.1", "93.184.216.34"} {
			e["forge "+kind+" "+from+" "+to] = ".*"
		}
		for _, odd := range []string{"options", "fragment", "late", "version", "protocol"} {
			e["forge "+kind+" 192.0.0.2 "+to+" "+odd] = ".*"
		}
		e["frame "+kind+" 192.0.0.2 "+to] = ".*"
		for _, ext := range []string{"", " hop", " destination", " fragment", " routing", " hop destination routing", strings.Repeat(" destination", 40)} {
			for _, to := range []string{"[2001:db8::8]:80", "[fd00:ec2::254]:80", "[2a01:4f8:c17::2]:7777", "[::ffff:84.32.10.2]:7777", "[64:ff9b::84.32.10.2]:7777"} {
				e["forge6 "+kind+" fd65:7865:63::2 "+to+ext] = ".*"
			}
		}
	}
	for _, protocol := range []string{"4", "41", "47", "50", "51", "89", "103", "132", "136", "255"} {
		e["send "+protocol+" 1.1.1.1"] = ".*"
		e["send "+protocol+" 2001:4860::8"] = ".*"
	}
	for _, a := range []string{"1.1.1.1", "2001:4860::8", "169.254.169.254", "10.99.0.2", "224.0.0.1", "ff02::1"} {
		e["icmp "+a] = ".*"
	}
	for _, a := range []string{"1.1.1.1:443", "1.1.1.1:123", "[2001:4860::8]:443", "93.184.216.34:5000", "93.184.216.34:443", "10.99.0.1:5000", "169.254.169.254:123"} {
		e["udp "+a] = refusedAtOnce + "|network is unreachable"
	}
	return e
}

// A shell in a sandbox gets no packet anywhere by what the kernel has, whatever the
// mode and the user, with a permission profile or without.
func TestEscapeByTheKernel(t *testing.T) {
	n, config := newInternet(t)
	came := hostServices(t, n, "7777")
	packets := n.Capture(t)
	for _, user := range []string{"0", "1234"} {
		r := newRoot(t, config+"[profile.default]\nimage = \"test/busybox:1\"\nuser = \""+user+"\"\n")
		h := r.serveIn(n).connect("/", "")
		confined := map[string]any{"sandbox": sandboxOf("root=read"), "cwd": "file:///workspace"}
		online := map[string]any{"sandbox": sandboxOf("root=read"), "cwd": "file:///workspace"}
		online["sandbox"].(map[string]any)["permissions"].(map[string]any)["network"] = "enabled"
		for _, mode := range []string{"none", "rules", "open"} {
			if mode != "none" {
				r.policy(0, "set", "--mode", mode)
			}
			t.Run(user+" "+mode, func(t *testing.T) {
				kernel(user == "0").try(t, h, nil)
				closed := refusedAtOnce + "|network is unreachable|network unreachable"
				e := escapes{}
				for _, a := range special {
					e["tcp "+a] = closed
				}
				for _, a := range []string{"[ff02::1]:80", "[fe80::1]:80", "224.0.0.1:80", "255.255.255.255:80"} {
					e["tcp "+a] = closed + "|invalid argument"
				}
				// The daemon's listeners in the namespace.
				for _, a := range []string{"192.0.0.1:63080", "[fd65:7865:63::1]:63080", "192.0.0.1:63081", "192.0.0.1:1"} {
					e["tcp "+a] = closed + "|connection reset by peer"
				}
				for _, a := range []string{"192.0.0.1:63053", "[fd65:7865:63::1]:63053", "192.0.0.1:53", "1.1.1.1:53"} {
					e["tcp "+a] = closed + "|connection reset by peer|EOF"
				}
				e.try(t, h, nil)
				e.try(t, h, online)
				nothingLeft(t, packets)
				to := "169.254.169.254:80"
				if mode != "open" {
					to = "1.1.1.1:80"
					escapes{"marked 1.1.1.1:80": closed + "|" + notPermitted, "routed 1.1.1.1:80 93.184.216.34": closed + "|operation now in progress|" + notPermitted, "routed [2001:4860::8]:80 2606:4700::1111": closed + "|invalid argument|" + notPermitted}.try(t, h, nil)
				}
				forged(to).try(t, h, nil)
				out, code := h.finish(confined, "/bin/escape tcp 1.1.1.1:80 + udp 1.1.1.1:53 + families + vsock + tun + newnet 2>&1")
				if strings.Contains(strings.ReplaceAll(out, "out: 1\n", ""), "out: ") || code != 0 {
					t.Errorf("without the network: exit %d: %s", code, out)
				}
				nothingLeft(t, packets)
			})
		}
	}
	if came.Load() > 0 {
		t.Errorf("the host's services were reached %d times", came.Load())
	}
}
