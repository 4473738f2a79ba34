// Package testnet is an internet for tests: a host, and a world behind its only
// link, each a network namespace of its own. Every address that there is answers in
// the world, private ones and those of metadata services included, so that what does
// not get there from a sandbox was stopped by the policy and by nothing else.
//
// In the world are a DNS server (with any zones, counting what it is asked), and on
// each address HTTP (80, 8080), TLS for any name by a CA of the test (443, 8443),
// datagrams that come back (443, 5000), a banner as of SSH (22), a port that
// accepts and is silent (9), and prefixes that do not answer at all. Nothing of it is
// seen outside of the two namespaces, which have no name and no mount: they end
// with the process that made them, whatever becomes of it.
package testnet

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"testing"

	"github.com/exec-server/exec-server/internal/testroot"
)

// Addresses of the host that the world reaches it by, and the world's end of the link.
var (
	Host       = netip.MustParseAddr("10.99.0.2") // in its own LAN, 10.99.0.0/24
	HostPublic = netip.MustParseAddr("84.32.10.2")
	Host6      = netip.MustParseAddr("2a01:4f8:c17::2")
	Gateway    = netip.MustParseAddr("10.99.0.1")
	Gateway6   = netip.MustParseAddr("2a01:4f8:c17::1")
)

// Addresses in the world, for tests that want some.
var (
	Web       = netip.MustParseAddr("93.184.216.34")
	Web6      = netip.MustParseAddr("2606:4700::1111")
	Other     = netip.MustParseAddr("151.101.0.223")
	Other6    = netip.MustParseAddr("2a04:4e42::223")
	Resolver  = netip.MustParseAddrPort("9.9.9.9:53")
	Resolver6 = netip.MustParseAddrPort("[2620:fe::9]:53")
	// Nowhere and Nowhere6 never answer: a SYN to them is lost.
	Nowhere  = netip.MustParseAddr("45.33.32.156")
	Nowhere6 = netip.MustParseAddr("2600:3c01:dead::156")
)

// Metadata are the metadata services of clouds.
var Metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
}

// Internet is a host and the world that it is linked to.
type Internet struct {
	// Host is where the program under test runs, World where the servers are.
	Host, World *Space
	DNS         *DNS
	Web         *Server
	CA          *CA
	closers     []io.Closer
}

// New makes an internet whose host is a namespace of its own, until the test ends.
// It needs root.
func New(t testing.TB) *Internet {
	t.Helper()
	testroot.Need(t)
	host, err := newSpace()
	if err != nil {
		t.Fatal(err)
	}
	return open(t, host)
}

// Here is New with the calling process as the program under test: its own namespace
// is the host. The process has to be one that Main has started. There is one at
// a time.
func Here(t testing.TB) *Internet {
	t.Helper()
	testroot.Need(t)
	if !isolated() {
		t.Fatal("testnet.Here is for tests whose TestMain calls testnet.Main")
	}
	host, err := thisSpace()
	if err != nil {
		t.Fatal(err)
	}
	return open(t, host)
}

func open(t testing.TB, host *Space) *Internet {
	t.Helper()
	n := &Internet{Host: host, closers: []io.Closer{host}}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	if err := n.start(); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *Internet) start() (err error) {
	if n.World, err = newSpace(); err != nil {
		return err
	}
	n.closers = append(n.closers, n.World)
	link, err := connect(n.Host, n.World)
	if err != nil {
		return fmt.Errorf("link the host to the world: %w", err)
	}
	n.closers = append(n.closers, link)
	if n.CA, err = newCA(); err != nil {
		return err
	}
	if n.DNS, err = n.serveDNS(); err != nil {
		return fmt.Errorf("serve DNS: %w", err)
	}
	if n.Web, err = n.serveWeb(); err != nil {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	if err := n.serveDatagrams(443, 5000); err != nil {
		return fmt.Errorf("serve datagrams: %w", err)
	}
	return n.serveStreams()
}

// close ends all of it, what was made last first.
func (n *Internet) close() error {
	var errs []error
	for i := range n.closers {
		errs = append(errs, n.closers[len(n.closers)-1-i].Close())
	}
	return errors.Join(errs...)
}
