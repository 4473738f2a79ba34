package e2e

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

// With veth there are datagrams and pings, as rules say, for as long as there is a
// daemon.
func TestDatagramsAndPings(t *testing.T) {
	b := withPolicy(t, rules.Policy{Mode: rules.None})
	web, web6 := testnet.Web.String(), testnet.Web6.String()
	other := net.JoinHostPort(testnet.Other.String(), "443")
	// The ports of a rule say nothing of pings.
	b.root.enforce(rules.Policy{Mode: rules.Rules, VEth: true, Rules: []rules.Rule{
		onPorts(over(allow(web, web6), rules.UDP), 443), over(allow(web, web6), rules.ICMP), onPorts(over(allow("other.example"), rules.UDP), 443),
	}})
	for _, try := range [][2]string{
		{"udp " + web + ":443", "ok probe"},
		{"udp [" + web6 + "]:443", "ok probe"},
		{"udp " + web + ":5000", "refused"},
		{"udp " + other, "refused"}, // before it is looked up
		{"name other.example 8.8.8.8:53", "ok NOERROR " + testnet.Other.String() + " NOERROR"},
		{"udp " + other, "ok probe"},
		{"ping " + web, "ok"},
		{"ping " + web6, "ok"},
		{"ping " + testnet.Other.String(), "unreachable"},
		{"udp " + net.JoinHostPort(testnet.Host.String(), "443"), "refused"},
		{"udp 169.254.169.254:443", "refused"},
		{"tcp " + web + ":80", "refused"},
	} {
		b.tells(try[0], try[1])
	}

	tries := filepath.Join(b.root.dir, "root", "environments", "default", "workspace", "tries")
	b.sh("while :; do for to in udp:" + web + ":443 ping:" + web6 + "; do PATIENCE=200ms probe ${to%%:*} ${to#*:} >>/workspace/tries; " +
		"done; sleep 0.1; done >/dev/null 2>&1 &")
	since := func(begin int) string {
		data, err := os.ReadFile(tries)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return string(data[min(begin, len(data)):])
	}
	eventually(t, "a datagram that comes back", func() bool { return strings.Contains(since(0), "ok") })
	b.server.stop(syscall.SIGKILL)
	// Each datagram begins a flow. The pings are one, which has begun already.
	further := func() []testnet.Packet {
		b.seen.Forget()
		begin := len(since(0))
		eventually(t, "further tries", func() bool { return strings.Count(since(begin), "\n") > 4 })
		return b.seen.Packets()
	}
	left := further()
	if slices.ContainsFunc(left, func(p testnet.Packet) bool { return p.Protocol == "udp" }) {
		t.Errorf("without a daemon there left %v", left)
	}
	eventually(t, "the end of pings", func() bool { return len(further()) == 0 })
	s := b.root.serveIn(b.n)
	begin := len(since(0))
	eventually(t, "a datagram that comes back again", func() bool { return strings.Contains(since(begin), "ok") })
	b.root.enforce(rules.Policy{Mode: rules.Rules})
	expect(t, "without the interfaces", s.connect("/", b.session).sh("probe udp "+web+":443"), "refused")
	s.stop(syscall.SIGTERM)
	err := b.n.Host.Do(func() error {
		links, err := netlink.LinkList()
		for _, l := range links {
			if l.Attrs().Name != "lo" && l.Attrs().Name != "eth0" {
				t.Errorf("%s is left on the host", l.Attrs().Name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
