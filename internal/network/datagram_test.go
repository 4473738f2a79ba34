package network

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/names"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/testnet"
	"github.com/exec-server/exec-server/internal/network/veth"
)

// openLinked opens a way that may have a link.
func openLinked(t *testing.T, s sandbox, p rules.Policy) *Way {
	t.Helper()
	return openOn(t, openHost(t), "test", s, p)
}

// openHost opens the host's side of links.
func openHost(t *testing.T) *veth.Host {
	t.Helper()
	log := zerolog.New(zerolog.NewTestWriter(t))
	h, err := veth.Open(veth.Options{Instance: t.Name(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// openOn opens a way that may have one of a host's links.
func openOn(t *testing.T, h *veth.Host, name string, s sandbox, p rules.Policy) *Way {
	t.Helper()
	u, err := names.NewUpstream([]string{testnet.Resolver.String()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(Options{Name: name, Netns: s.ns, Policy: p, Dir: t.TempDir(), Upstream: u, VEth: h, Log: zerolog.New(zerolog.NewTestWriter(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// testTime is how long a test waits for what has to come.
const testTime = 30 * time.Second

// udp sends a datagram and returns what comes back.
func (s sandbox) udp(to string) (string, error) {
	c, err := s.dial(context.Background(), "udp", to)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return exchange(c, "hello")
}

func exchange(c net.Conn, text string) (string, error) {
	_ = c.SetDeadline(time.Now().Add(testTime))
	if _, err := c.Write([]byte(text)); err != nil {
		return "", err
	}
	b := make([]byte, 1500)
	n, err := c.Read(b)
	return string(b[:n]), err
}

// ping sends an echo request and waits for the reply.
func (s sandbox) ping(to string) error {
	a := netip.MustParseAddr(to)
	network, request := "ip4:icmp", []byte{8, 0, 0, 0, 1, 2, 3, 4}
	if a.Is6() {
		network, request[0] = "ip6:ipv6-icmp", 128
	} else {
		binary.BigEndian.PutUint16(request[2:], ^uint16(0x0800+0x0102+0x0304))
	}
	c, err := s.dial(context.Background(), network, to)
	if err != nil {
		return err
	}
	defer c.Close()
	got, err := exchange(c, string(request))
	if err != nil {
		return err
	}
	if a.Is4() {
		got = got[4*(got[0]&15):] // the header of IP
	}
	if want := map[bool]byte{true: 0, false: 129}[a.Is4()]; got[0] != want {
		return fmt.Errorf("%q came back", got)
	}
	return nil
}

func TestLink(t *testing.T) {
	n := testnet.Here(t)
	n.DNS.Set("quic.test", time.Minute, testnet.Web.String(), testnet.Web6.String())
	s := newSandbox(t)
	w := openLinked(t, s, rules.Policy{Mode: rules.Rules, VEth: true, Rules: []rules.Rule{
		{Allow: []string{testnet.Other.String(), testnet.Other6.String()}, Protocols: []rules.Protocol{rules.UDP}, Ports: []rules.Ports{{First: 5000, Last: 5000}}},
		{Allow: []string{testnet.Other.String(), testnet.Other6.String()}, Protocols: []rules.Protocol{rules.ICMP}},
		{Allow: []string{"quic.test"}, Protocols: []rules.Protocol{rules.UDP}, Ports: []rules.Ports{{First: 443, Last: 443}}},
		{Allow: []string{"0.0.0.0/0", "::/0"}, Protocols: []rules.Protocol{rules.TCP}},
	}})
	at := func(a netip.Addr, port uint16) string { return netip.AddrPortFrom(a, port).String() }
	for _, to := range []string{at(testnet.Other, 5000), at(testnet.Other6, 5000)} {
		if got, err := s.udp(to); err != nil || got != "hello" {
			t.Errorf("udp %s: %q, %v", to, got, err)
		}
	}
	for _, to := range []netip.Addr{testnet.Other, testnet.Other6} {
		if err := s.ping(to.String()); err != nil {
			t.Errorf("ping %s: %v", to, err)
		}
	}
	if _, err := s.udp(at(testnet.Web, 443)); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a name that was not looked up: %v", err)
	}
	addrs, err := s.resolve(t.Context(), "quic.test")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if got, err := s.udp(at(a, 443)); err != nil || got != "hello" {
			t.Errorf("udp to the name, %s: %q, %v", a, got, err)
		}
	}
	denied := []string{
		at(testnet.Other, 443), at(testnet.Other6, 443), at(testnet.Web, 5000), at(testnet.Host, 5000), at(testnet.HostPublic, 5000), at(testnet.Host6, 5000),
		"10.0.0.1:5000", "[fd00::1]:5000",
	}
	for _, a := range testnet.Metadata {
		denied = append(denied, at(a, 5000))
	}
	for _, to := range denied {
		if got, err := s.udp(to); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("udp %s: %q, %v", to, got, err)
		}
	}
	for _, to := range []netip.Addr{testnet.Web, testnet.Web6, testnet.Host, testnet.Host6, testnet.Metadata[0]} {
		if err := s.ping(to.String()); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("ping %s: %v", to, err)
		}
	}
	c, err := s.dial(t.Context(), "tcp", at(testnet.Other, 22))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	stats := w.Stats()
	if d := stats.Denied; d[rules.OwnAddress] < 5 || d[rules.Metadata] < 6 || d[rules.Private] < 2 || d[rules.ByMode] < 6 {
		t.Errorf("denied: %v", d)
	}
	if stats.Names["quic.test"].Allowed < 2 || !strings.HasPrefix(stats.Denials[0].What, "icmp ") {
		t.Errorf("%+v", stats)
	}
	for w.Stats().Names[linkLabel].Out == 0 {
		time.Sleep(time.Millisecond)
	}
}
