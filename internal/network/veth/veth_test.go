package veth

import (
	"bufio"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/netns"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

var world = all4and6(testnet.Other, testnet.Other6)

func TestFlows(t *testing.T) {
	testnet.Here(t)
	g := newGuest(t)
	h := openHost(t, Options{})
	asked := make(chan netns.Flow, 16)
	var passed atomic.Uint64
	_, err := h.Add(LinkOptions{Name: "one", Netns: g.ns, Decide: func(p *Packet) {
		asked <- p.Flow
		if p.Dst.Port() == 5000 {
			p.Accept()
		} else {
			p.Refuse()
		}
	}, Count: func(in, out uint64) { passed.Add(in + out) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range world {
		c := g.dial(a, 5000)
		for range 3 {
			if err := echo(c); err != nil {
				t.Errorf("%v: %v", a, err)
			}
		}
		if f := <-asked; f.Dst != netip.AddrPortFrom(a, 5000) || f.Src.String() != c.LocalAddr().String() {
			t.Errorf("%v: asked about %+v", a, f)
		}
		// More than the kernel has errors for.
		for range 16 {
			if err := echo(g.dial(a, 443)); !errors.Is(err, unix.ECONNREFUSED) {
				t.Fatalf("%v: %v", a, err)
			}
			<-asked
		}
	}
	if len(asked) != 0 {
		t.Errorf("asked again about %+v", <-asked)
	}
	for passed.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
}

// Everything is asked for here, and everything is allowed.
func TestHostilePackets(t *testing.T) {
	n := testnet.Here(t)
	g, other := newGuest(t), newGuest(t)
	h := openHost(t, Options{})
	l := h.mustAdd(g, "one", accepting)
	l2 := h.mustAdd(other, "two", accepting)
	at, err := net.ListenPacket("udp", ":5000")
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	var in net.PacketConn
	other.do(func() (err error) { in, err = net.ListenPacket("udp", ":5000"); return err })
	defer in.Close()
	seen := n.Capture(t)
	a4, a6 := testnet.Web, testnet.Web6
	syn := []byte{0x10, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0}
	for _, p := range [][]byte{
		// From addresses that are not the guest's.
		datagram(testnet.Host, a4, 5000), datagram(testnet.Host6, a6, 5000), datagram(l2.guest4, a4, 5000), datagram(l2.guest6, a6, 5000),
		datagram(l.host4, a4, 5000), datagram(netip.MustParseAddr("127.0.0.1"), a4, 5000), datagram(testnet.Other, a4, 5000),
		datagram(testnet.Other6, a6, 5000), datagram(netip.MustParseAddr("::1"), a6, 5000), datagram(netip.MustParseAddr("fe80::1"), a6, 5000),
		datagram(netip.IPv4Unspecified(), a4, 5000), datagram(netip.IPv6Unspecified(), a6, 5000),
		// TCP, and ICMP that asks for no echo.
		made(l.guest4, a4, unix.IPPROTO_TCP, syn...), made(l.guest6, a6, unix.IPPROTO_TCP, syn...),
		made(l.guest4, a4, unix.IPPROTO_ICMP, 13, 0, 0xf2, 0xff, 0, 0, 0, 0), made(l.guest6, a6, unix.IPPROTO_ICMPV6, 137, 0, 0, 0, 0, 0, 0, 0),
		made(l.guest4, a4, unix.IPPROTO_ICMP, append([]byte{3, 3, 0, 0, 0, 0, 0, 0}, datagram(a4, testnet.Host, 5000)...)...),
		// To the host and to another link.
		datagram(l.guest4, testnet.Host, 5000), datagram(l.guest4, testnet.HostPublic, 5000), datagram(l.guest6, testnet.Host6, 5000),
		datagram(l.guest4, l.host4, 5000), datagram(l.guest6, l.host6, 5000), datagram(l.guest4, l2.host4, 5000), datagram(l.guest6, l2.host6, 5000),
		datagram(l.guest4, l2.guest4, 5000), datagram(l.guest6, l2.guest6, 5000), datagram(l.guest4, netip.MustParseAddr("127.0.0.1"), 5000),
		datagram(l.guest4, netip.MustParseAddr("255.255.255.255"), 5000), datagram(l.guest6, netip.MustParseAddr("ff02::1"), 5000),
	} {
		g.frame(l, p)
	}
	for _, a := range world {
		if err := echo(g.dial(a, 5000)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range seen.Packets() {
		if !slices.Contains(world, p.To.Addr()) {
			t.Errorf("it has left: %v", p)
		}
	}
	for name, c := range map[string]net.PacketConn{"the host": at, "another guest": in} {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if k, from, err := c.ReadFrom(make([]byte, 9)); err == nil {
			t.Errorf("%d bytes came to %s from %v", k, name, from)
		}
	}
	// By hand it is as allowed as otherwise.
	g.frame(l, datagram(l.guest4, testnet.Web, 5000))
	g.frame(l, datagram(l.guest6, testnet.Web6, 5000))
	for len(seen.To(testnet.Web)) == 0 || len(seen.To(testnet.Web6)) == 0 {
		time.Sleep(time.Millisecond)
	}
	// Nothing comes in that nobody asked for.
	for _, to := range []netip.Addr{l2.guest4, l2.guest6} {
		c, err := net.Dial("udp", netip.AddrPortFrom(to, 5000).String())
		if err == nil {
			_, err = c.Write([]byte("x"))
			_ = c.Close()
		}
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("from the host: %v", err)
		}
	}
	if err := n.World.Do(func() error {
		link, err := netlink.LinkByName("world")
		if err != nil {
			return err
		}
		to := &net.IPNet{IP: l2.guest4.AsSlice(), Mask: net.CIDRMask(32, 32)}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: to, Gw: testnet.Host.AsSlice()}); err != nil {
			return err
		}
		c, err := net.Dial("udp", netip.AddrPortFrom(l2.guest4, 5000).String())
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("x"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := echo(other.dial(testnet.Other, 5000)); err != nil {
		t.Fatal(err)
	}
	_ = in.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, from, err := in.ReadFrom(make([]byte, 9)); err == nil {
		t.Errorf("a datagram came in from %v", from)
	}
}

func TestDaemonIsKilled(t *testing.T) {
	n := testnet.Here(t)
	g := newGuest(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), daemonMark+"="+t.Name())
	cmd.ExtraFiles = []*os.File{g.ns}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	old := g.dial(testnet.Other, 5000)
	if err := echo(old); err != nil {
		t.Fatal(err)
	}
	_, _ = cmd.Process.Kill(), cmd.Wait()

	seen := n.Capture(t)
	fresh := g.dial(testnet.Web, 5000)
	if _, err := fresh.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	h := &Host{table: "exec-server-" + instanceID(t.Name())}
	for h.lives(t) {
		time.Sleep(10 * time.Millisecond)
	}
	seen.Forget()
	_ = old.SetDeadline(time.Time{})
	for range 3 {
		if _, err := old.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if p := append(seen.To(testnet.Other), seen.To(testnet.Web)...); len(p) != 0 {
		t.Errorf("without a daemon it has left: %v", p)
	}

	h = openHost(t, Options{})
	asked := make(chan netns.Flow, 16)
	l := h.mustAdd(g, "one", func(p *Packet) { p.Accept(); asked <- p.Flow })
	// It has the address that it had, so that sockets go on.
	if from := old.LocalAddr().(*net.UDPAddr).AddrPort().Addr(); from != l.guest4 {
		t.Errorf("%v became %v", from, l.guest4)
	}
	if err := echo(old); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	if f := <-asked; f.Src.String() != old.LocalAddr().String() {
		t.Errorf("asked about %+v", f)
	}
}

// lives tells whether the sign of life is there.
func (h *Host) lives(t *testing.T) bool {
	t.Helper()
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.GetSetElements(&nftables.Set{Table: &nftables.Table{Family: nftables.TableFamilyINet, Name: h.table}, Name: "alive"})
	if err != nil {
		t.Fatal(err)
	}
	return len(e) > 0
}

// What is cut is asked about again.
func TestCut(t *testing.T) {
	testnet.Here(t)
	g := newGuest(t)
	h := openHost(t, Options{})
	var deny atomic.Bool
	l := h.mustAdd(g, "one", func(p *Packet) {
		if deny.Load() {
			p.Refuse()
		} else {
			p.Accept()
		}
	})
	var open []net.Conn
	for _, a := range world {
		c := g.dial(a, 5000)
		if err := echo(c); err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	deny.Store(true)
	for i, c := range open {
		if err := echo(c); err != nil {
			t.Errorf("%v: what is open is not asked about: %v", world[i], err)
		}
	}
	if err := l.Cut(func(f netns.Flow) bool { return f.Dst == netip.AddrPortFrom(testnet.Other6, 5000) }); err != nil {
		t.Fatal(err)
	}
	if err := echo(open[0]); err != nil {
		t.Errorf("the other was cut: %v", err)
	}
	if err := echo(open[1]); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("it was not cut: %v", err)
	}
}

func TestLimits(t *testing.T) {
	n := testnet.Here(t)
	g := newGuest(t)
	h := openHost(t, Options{})
	l := h.mustAdd(g, "one", accepting)
	if err := l.SetLimits(rules.Limits{Connections: 2, BytesPerSecond: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	seen := n.Capture(t)
	first, second := g.dial(testnet.Other, 5000), g.dial(testnet.Other6, 5000)
	for _, c := range []net.Conn{first, second} {
		if err := echo(c); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = g.dial(testnet.Web, 5000).Write([]byte("x"))
	if err := echo(first); err != nil {
		t.Error(err)
	}
	if p := seen.To(testnet.Web); len(p) != 0 {
		t.Errorf("the third of two has left: %v", p)
	}
	// A burst of what is less than the largest datagrams lets 64 KiB pass.
	if err := l.SetLimits(rules.Limits{BytesPerSecond: 1}); err != nil {
		t.Fatal(err)
	}
	seen.Forget()
	for range 200 {
		if _, err := first.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	for len(seen.To(testnet.Other)) == 0 {
		time.Sleep(time.Millisecond)
	}
	if k := len(seen.To(testnet.Other)); k > 100 {
		t.Errorf("of 200 packets %d have left", k)
	}
}

// What others have for packets that are forwarded holds for links, too.
func TestHindrances(t *testing.T) {
	n := testnet.Here(t)
	if all := Hindrances(); len(all) != 0 {
		t.Errorf("%q", all)
	}
	policy := nftables.ChainPolicyDrop
	c := &nftables.Conn{}
	others := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "filter"})
	c.AddChain(&nftables.Chain{Name: "FORWARD", Table: others, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter, Policy: &policy})
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.DelTable(others)
		if err := c.Flush(); err != nil {
			t.Error(err)
		}
	})
	if all := Hindrances(); len(all) != 1 || !strings.Contains(all[0], "FORWARD") {
		t.Errorf("%q", all)
	}
	g := newGuest(t)
	h := openHost(t, Options{})
	h.mustAdd(g, "one", accepting)
	seen := n.Capture(t)
	_, _ = g.dial(testnet.Other, 5000).Write([]byte("x"))
	if err := echo(g.dial(testnet.Other6, 5000)); err != nil { // which is another table's
		t.Fatal(err)
	}
	if p := seen.To(testnet.Other); len(p) != 0 {
		t.Errorf("it has left: %v", p)
	}
}

// Others may delete all tables, their own with it.
func TestTableIsDeleted(t *testing.T) {
	testnet.Here(t)
	g := newGuest(t)
	h := openHost(t, Options{})
	h.mustAdd(g, "one", accepting)
	c := g.dial(testnet.Other, 5000)
	if err := echo(c); err != nil {
		t.Fatal(err)
	}
	if err := h.deleteTable(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; {
		_ = c.SetDeadline(time.Now().Add(50 * time.Millisecond))
		_, _ = c.Write([]byte("hello"))
		_, err := c.Read(make([]byte, 9))
		if err == nil && h.exists() {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it is not made again: %v", err)
		}
	}
}

func TestPrefixesAreTaken(t *testing.T) {
	testnet.Here(t)
	g := newGuest(t)
	h := openHost(t, Options{V4: netip.MustParsePrefix("10.99.0.0/20")})
	_, err := h.Add(LinkOptions{Name: "one", Netns: g.ns, Decide: accepting})
	if err == nil || !strings.Contains(err.Error(), "10.99.0.0/24") {
		t.Errorf("in the host's own network: %v", err)
	}
	h.nothingLeft(t)
}

// Links of two daemons get different addresses out of the same prefixes.
func TestTwoDaemons(t *testing.T) {
	testnet.Here(t)
	g1, g2 := newGuest(t), newGuest(t)
	small := Options{V4: netip.MustParsePrefix("10.213.0.0/28"), V6: netip.MustParsePrefix("fd65::/112")}
	h1, h2 := openHost(t, small), openHost(t, Options{Instance: "second", V4: small.V4, V6: small.V6})
	l1, l2 := h1.mustAdd(g1, "one", accepting), h2.mustAdd(g2, "one", accepting)
	if l1.guest4 == l2.guest4 || l1.guest6 == l2.guest6 || h1.queue.Number() == h2.queue.Number() {
		t.Errorf("both have %v and queue %d", l1.guest4, h1.queue.Number())
	}
	for _, g := range []guest{g1, g2} {
		for _, a := range world {
			if err := echo(g.dial(a, 5000)); err != nil {
				t.Error(err)
			}
		}
	}
	if err := l1.Close(); err != nil {
		t.Fatal(err)
	}
	h1.nothingLeft(t)
	if err := echo(g2.dial(testnet.Other, 5000)); err != nil {
		t.Errorf("without the other: %v", err)
	}
}

// A host that has its route from a router would lose it.
func TestRouterAdvertisements(t *testing.T) {
	testnet.Here(t)
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	eth0, err := netlink.LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	dst := &net.IPNet{IP: net.ParseIP("2a00::"), Mask: net.CIDRMask(16, 128)}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Dst: dst, Protocol: unix.RTPROT_RA}); err != nil {
		t.Fatal(err)
	}
	g := newGuest(t)
	h := openHost(t, Options{})
	h.mustAdd(g, "one", accepting)
	if err := echo(g.dial(testnet.Other, 5000)); err != nil {
		t.Error(err)
	}
	g.do(func() error {
		if c, err := net.Dial("udp", netip.AddrPortFrom(testnet.Other6, 5000).String()); err == nil {
			c.Close()
			t.Error("there is IPv6")
		}
		return nil
	})
	if on, err := read("ipv6/conf/all/forwarding"); err != nil || on != "0" {
		t.Errorf("forwarding is %q, %v", on, err)
	}
}

// Neither sees what the other one is about to take.
func TestTwoDaemonsAtOnce(t *testing.T) {
	testnet.Here(t)
	a, b := openHost(t, Options{Instance: "a"}), openHost(t, Options{Instance: "b"})
	for _, name := range []string{"default", "one"} {
		i, err := a.index(name)
		if err != nil {
			t.Fatal(err)
		}
		if k, err := b.index(name); err != nil || k == i {
			t.Errorf("both have pair %d for %s, %v", i, name, err)
		}
	}
}
