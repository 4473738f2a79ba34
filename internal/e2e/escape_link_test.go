package e2e

import (
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/exec-server/exec-server/internal/network/testnet"
)

// hostDatagrams is hostServices for datagrams.
func hostDatagrams(t *testing.T, n *testnet.Internet, port string) *atomic.Int64 {
	t.Helper()
	c, err := n.Host.ListenPacket("udp", ":"+port)
	if err != nil {
		t.Fatal(err)
	}
	var came atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, _, err := c.ReadFrom(make([]byte, 100)); err != nil {
				return
			}
			came.Add(1)
		}
	}()
	t.Cleanup(func() { _ = c.Close(); <-done })
	return &came
}

// With an interface there is more to try, as the image's root and as the agent.
func TestEscapeByTheLink(t *testing.T) {
	n, config := newInternet(t)
	came, told := hostServices(t, n, "7777"), hostDatagrams(t, n, "7777")
	packets := n.Capture(t)
	r := newRoot(t, config+profile+"user = \"0\"\n[profile.default.network]\nmode = \"open\"\nveth = true\n"+
		"[[profile.default.network.rule]]\ndeny = [\"151.101.0.0/16\", \"2a04:4e42::/32\"]\n")
	s := r.serveIn(n)
	h, other := s.connect("/", ""), s.connect("/environments/other", "")
	address := func(h *harness, family string) string {
		out := h.sh("ip -o -" + family + " addr show dev eth0")
		_, out, _ = strings.Cut(out, "inet")
		_, out, _ = strings.Cut(out, " ")
		out, _, _ = strings.Cut(out, " ")
		a, err := netip.ParsePrefix(out)
		if err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		return a.Addr().String()
	}
	mine, theirs := address(h, "4"), address(other, "4")
	mine6, theirs6 := address(h, "6"), address(other, "6")
	gateway := netip.MustParseAddr(mine).Prev().String()
	denied := []string{"169.254.169.254:80", "151.101.0.223:5000", "151.101.0.223:443", "10.99.0.1:5000", "10.99.0.2:7777", "84.32.10.2:7777", theirs + ":7777", gateway + ":7777", "127.0.0.1:7777", "1.1.1.1:53", "224.0.0.1:7777", "255.255.255.255:7777"}
	e, out := escapes{}, escapes{}
	for _, to := range denied {
		for _, from := range []string{mine, theirs, gateway, "192.0.0.2", "10.99.0.2", "127.0.0.1", "151.101.0.223"} {
			e["forge udp "+from+" "+to], out["out udp "+from+" "+to] = ".*", ".*"
			out["out syn "+from+" "+to], out["out ack "+from+" "+to] = ".*", ".*"
		}
		for _, odd := range []string{"options", "fragment", "late", "version", "protocol"} {
			out["out udp "+mine+" "+to+" "+odd] = ".*"
		}
		e["udp "+to] = "connection refused|.*unreachable|i/o timeout|permission denied|.*not permitted"
	}
	// TCP does not go that way, wherever to.
	for _, kind := range []string{"syn", "ack", "rst", "fin", "none", "synrst", "synfin", "xmas"} {
		out["out "+kind+" "+mine+" 1.1.1.1:80"] = ".*"
	}
	for _, a := range []string{"169.254.169.254", "151.101.0.223", "10.99.0.1", "84.32.10.2", gateway, theirs, "2a04:4e42::223", "fd00:ec2::254", "2a01:4f8:c17::2", "64:ff9b::84.32.10.2"} {
		e["icmp "+a] = ".*"
	}
	for _, ext := range []string{"", " hop", " destination", " fragment", " routing", " hop destination routing", strings.Repeat(" destination", 40)} {
		for _, to := range []string{"[2a04:4e42::223]:5000", "[fd00:ec2::254]:80", "[2a01:4f8:c17::2]:7777", "[::ffff:84.32.10.2]:7777", "[64:ff9b::84.32.10.2]:7777", "[" + theirs6 + "]:7777", "[2606:4700::1111]:53"} {
			for _, from := range []string{mine6, theirs6, "2a01:4f8:c17::2", "fd65:7865:63::2"} {
				e["forge6 udp "+from+" "+to+ext], e["forge6 syn "+from+" "+to+ext] = ".*", ".*"
			}
		}
	}
	for _, protocol := range []string{"4", "41", "47", "50", "132", "136"} {
		e["send "+protocol+" 1.1.1.1"], e["send "+protocol+" 2001:4860::8"] = ".*", ".*"
	}
	e.try(t, h, nil)
	out.try(t, h, nil)
	nothingLeft(t, packets)
	if came.Load() > 0 || told.Load() > 0 {
		t.Errorf("the host was reached %d times by TCP, %d times by UDP", came.Load(), told.Load())
	}
	// It is there at all.
	escapes{"udp 1.1.1.1:5000": `out: "hello"`, "out udp " + mine + " 1.1.1.1:5000": "out: sent"}.try(t, h, nil)
	if len(packets.To(netip.MustParseAddr("1.1.1.1"))) < 2 {
		t.Error("what is allowed did not get there")
	}
}
