package network

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/netns"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

// linked is a policy of mode rules that allows datagrams to addresses.
func linked(allow ...string) rules.Policy {
	return rules.Policy{Mode: rules.Rules, VEth: true, Rules: []rules.Rule{{Allow: allow, Protocols: []rules.Protocol{rules.UDP}}}}
}

func udpTo(a netip.Addr, port uint16) string { return netip.AddrPortFrom(a, port).String() }

// The root of a sandbox may do with its namespace what it wants.
func TestLinkIsNoWayAround(t *testing.T) {
	n := testnet.Here(t)
	s := newSandbox(t)
	w := openLinked(t, s, rules.Policy{Mode: rules.Open, VEth: true})
	if got, err := s.udp(udpTo(testnet.Other, 5000)); err != nil || got != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
	err := s.do(func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		c.FlushRuleset()
		if err := c.Flush(); err != nil {
			return err
		}
		for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
			for i := range 2 { // those of TCP and DNS
				r := netlink.NewRule()
				r.Family, r.Priority = family, 1000+i
				if err := netlink.RuleDel(r); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := n.Capture(t)
	var open []int
	for _, a := range []netip.Addr{testnet.Web, testnet.Web6} {
		for _, protocol := range []int{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP, unix.IPPROTO_GRE, unix.IPPROTO_IPIP, unix.IPPROTO_UDPLITE} {
			fd, err := s.attempt(a, protocol)
			if err != nil {
				t.Errorf("%s, protocol %d: %v", a, protocol, err)
			}
			open = append(open, fd)
		}
	}
	for _, fd := range open {
		defer unix.Close(fd)
	}
	// This comes after them.
	if got, err := s.udp(udpTo(testnet.Other, 5000)); err != nil || got != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
	if p := append(seen.To(testnet.Web), seen.To(testnet.Web6)...); len(p) != 0 {
		t.Errorf("they have left: %v", p)
	}
	for w.Stats().Denied[rules.Unsupported] < 6 { // of UDP, GRE and IP in IP; the rest is not even well-formed
		time.Sleep(time.Millisecond)
	}
}

// attempt sends a packet, without waiting for what becomes of it. Those of UDP are
// for port 53.
func (s sandbox) attempt(to netip.Addr, protocol int) (fd int, err error) {
	domain, sa := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Addr: [4]byte(to.AsSlice()[:4])})
	if to.Is6() {
		domain, sa = unix.AF_INET6, &unix.SockaddrInet6{Addr: to.As16()}
	}
	typ := unix.SOCK_RAW
	switch protocol {
	case unix.IPPROTO_TCP:
		typ = unix.SOCK_STREAM
	case unix.IPPROTO_UDP:
		typ = unix.SOCK_DGRAM
	}
	port := map[int]int{unix.IPPROTO_TCP: 80, unix.IPPROTO_UDP: 53}[protocol]
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		sa.Port = port
	case *unix.SockaddrInet6:
		sa.Port = port
	}
	err = s.do(func() (err error) {
		if fd, err = unix.Socket(domain, typ|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol); err != nil {
			return err
		}
		if typ == unix.SOCK_STREAM {
			if err = unix.Connect(fd, sa); errors.Is(err, unix.EINPROGRESS) {
				err = nil
			}
			return err
		}
		return unix.Sendto(fd, make([]byte, 24), 0, sa)
	})
	return fd, err
}

// A change is about what begins after it, and with closeOpen about all.
func TestLinkFollowsThePolicy(t *testing.T) {
	testnet.Here(t)
	s := newSandbox(t)
	w := openLinked(t, s, linked(testnet.Other.String()))
	c, err := s.dial(t.Context(), "udp", udpTo(testnet.Other, 5000))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := exchange(c, "hello"); err != nil {
		t.Fatal(err)
	}
	other := linked(testnet.Web.String())
	if err := w.Set(other, false); err != nil {
		t.Fatal(err)
	}
	if _, err := exchange(c, "hello"); err != nil {
		t.Errorf("what was open: %v", err)
	}
	if _, err := s.udp(udpTo(testnet.Other, 5000)); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a new flow: %v", err)
	}
	if _, err := s.udp(udpTo(testnet.Web, 5000)); err != nil {
		t.Errorf("a new flow that is allowed: %v", err)
	}
	if err := w.Set(other, true); err != nil {
		t.Fatal(err)
	}
	if _, err := exchange(c, "hello"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("with closeOpen: %v", err)
	}
	other.VEth, other.Rules = false, nil
	if err := w.Set(other, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.udp(udpTo(testnet.Web, 5000)); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("without the link: %v", err)
	}
	if err := s.do(func() error { _, err := net.InterfaceByName(netns.Link); return err }); err == nil {
		t.Error("the link is there")
	}
	if err := w.Set(linked(testnet.Web6.String()), false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.udp(udpTo(testnet.Web6, 5000)); err != nil {
		t.Errorf("with the link again: %v", err)
	}
	if err := w.Set(rules.Policy{Mode: rules.None, VEth: true}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.udp(udpTo(testnet.Web6, 5000)); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("mode none: %v", err)
	}
}

// Environments do not reach each other, whatever prefix is allowed.
func TestLinksAreApart(t *testing.T) {
	testnet.Here(t)
	one, two := newSandbox(t), newSandbox(t)
	h := openHost(t)
	p := linked("10.0.0.0/8", "fd00::/8", testnet.Other.String())
	p.Rules[0].Protocols = []rules.Protocol{rules.UDP, rules.TCP, rules.ICMP}
	w := openOn(t, h, "one", one, p)
	openOn(t, h, "two", two, p)
	var addrs []net.Addr
	err := two.do(func() error {
		link, err := net.InterfaceByName(netns.Link)
		if err == nil {
			addrs, err = link.Addrs()
		}
		return err
	})
	if err != nil || len(addrs) != 2 {
		t.Fatal(addrs, err)
	}
	for _, a := range addrs {
		p := netip.MustParsePrefix(a.String())
		var l net.Listener
		var in net.PacketConn
		err := two.do(func() (err error) {
			if l, err = net.Listen("tcp", udpTo(p.Addr(), 5000)); err != nil {
				return err
			}
			in, err = net.ListenPacket("udp", udpTo(p.Addr(), 5000))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		defer in.Close()
		if c, err := one.dial(t.Context(), "tcp", udpTo(p.Addr(), 5000)); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("tcp %v: %v, %v", p, c, err)
		}
		if got, err := one.udp(udpTo(p.Addr(), 5000)); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("udp %v: %q, %v", p, got, err)
		}
	}
	if d := w.Stats().Denied; d[rules.OwnAddress] != 4 {
		t.Errorf("%v", d)
	}
	// Nor do they reach the host, if its very address is allowed.
	if err := w.Set(linked(testnet.Host.String(), testnet.Other.String(), "10.1.0.0/16"), false); err != nil {
		t.Fatal(err)
	}
	if got, err := one.udp(udpTo(testnet.Host, 5000)); !errors.Is(err, unix.ECONNREFUSED) || w.Stats().Denied[rules.OwnAddress] != 5 {
		t.Errorf("the host: %q, %v", got, err)
	}
	// The prefixes are open for what is no link.
	if _, err := one.udp("10.1.2.3:5000"); err != nil {
		t.Error(err)
	}
}

// When the volume is used up, what has begun ends, too.
func TestLinkHasTheVolume(t *testing.T) {
	testnet.Here(t)
	s := newSandbox(t)
	p := linked(testnet.Other6.String())
	p.Bytes = 1000
	w := openLinked(t, s, p)
	c, err := s.dial(t.Context(), "udp", udpTo(testnet.Other6, 5000))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := exchange(c, string(make([]byte, 1000))); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := exchange(c, "x")
		if errors.Is(err, unix.ECONNREFUSED) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := s.udp(udpTo(testnet.Other6, 443)); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a new flow: %v", err)
	}
	if n := w.Stats(); n.Denied[rules.TooMuch] < 2 || n.Used < 2000 {
		t.Errorf("%+v", n)
	}
}

// A server without links has no policies with them, and the one before stays.
func TestNoLinks(t *testing.T) {
	r := newRig(t, allowing("1.1.1.1"))
	if err := r.Set(linked("1.1.1.1"), false); !errors.Is(err, errNoLink) {
		t.Errorf("%v", err)
	}
	if p := r.Policy(); p.VEth {
		t.Errorf("%+v is in force", p)
	}
}
