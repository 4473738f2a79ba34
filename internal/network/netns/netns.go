// Package netns makes a network namespace that has nothing but loopback a place from
// which programs reach what a policy lets them: TCP connections are held at their
// first packet until they were decided, and then go to listeners that are in the
// namespace and whose descriptors this process has; DNS goes to listeners of its own;
// all else is refused by the kernel. Nothing outside of the namespace is changed.
//
// It fails closed. The namespace has no way out but the listeners' descriptors, so
// that without this process, or without the table, nothing passes.
package netns

import (
	"fmt"
	"net"
	"net/netip"
	"os"
)

// The addresses that every namespace has on its loopback: programs have the guest's
// for their source, and the listeners have the gateway's. 192.0.0.0/29 is for the ends
// of such a way within a machine (RFC 7335), and the prefix of the others for local use;
// no network has them.
var (
	Guest4   = netip.MustParseAddr("192.0.0.2")
	Gateway4 = netip.MustParseAddr("192.0.0.1")
	Guest6   = netip.MustParseAddr("fd65:7865:63::2")
	Gateway6 = netip.MustParseAddr("fd65:7865:63::1")
)

// Link is the name of a link that a namespace may have besides: what is sent to it,
// and is neither TCP nor DNS, is not refused here.
const Link = "eth0"

// Options are what Open needs to know.
type Options struct {
	// Decide is called with the first packet of each TCP connection, from before Open
	// returns until Close does, and again when it is sent again: after Drop, or by a
	// program that makes packets by hand. It must not block: the verdict may be given
	// later, by any goroutine. A packet without a verdict waits in the kernel, which
	// keeps 512 a namespace, and drops what comes beyond that.
	Decide func(*Packet)
	// Denied is told of what is refused because it is neither TCP nor DNS, 20 packets
	// a second at most, several of a flow among them. It must not block. May be nil.
	// Kernels without nft_log and nfnetlink_log do not tell.
	Denied func(Flow)
}

// DNS is one address's pair of listeners for DNS.
type DNS struct {
	UDP net.PacketConn
	TCP net.Listener
}

// Namespace is one that was opened. Its listeners are the owner's to accept from and
// are closed by Close.
type Namespace struct {
	// TCP get what Accept let pass. A connection that comes without that (by packets
	// made by hand) is to be decided as if it were new, by what Original says.
	TCP []net.Listener // one for IPv4, and one for IPv6 where the kernel has it
	// DNS get what is sent to port 53 of the gateway and of every address that is
	// not the namespace's own.
	DNS []DNS

	ns    *os.File // ours
	queue *queue
}

// Open sets the namespace up. It may have been set up before, by this process or by
// one that has ended, whose connections are not taken over. The file stays the
// caller's. After an error nothing passes.
func Open(ns *os.File, o Options) (*Namespace, error) {
	own, err := duplicate(ns)
	if err != nil {
		return nil, err
	}
	n := &Namespace{ns: own}
	if err := n.open(o); err != nil {
		n.Close() //nolint:errcheck // the first error is the one to tell
		return nil, err
	}
	return n, nil
}

// open leaves the routes for the end, so that what fails before leaves a namespace
// without a network, or with the table of before and nobody who gives verdicts.
func (n *Namespace) open(o Options) error {
	return within(n.ns, func() error {
		families, err := addAddresses()
		if err != nil {
			return err
		}
		if err := n.listen(families); err != nil {
			return err
		}
		v, err := loadTable(n.targets(families))
		if err != nil {
			return err
		}
		if n.queue, err = openQueue(o, v.log); err != nil {
			return err
		}
		return addRoutes(families)
	})
}

// Close ends the listeners and the queue. The table stays, so that from then on
// connections hang, until the namespace is opened again: those that have begun
// meanwhile succeed then. Packets that wait for a verdict are dropped. It must not be
// called by Decide.
func (n *Namespace) Close() error {
	if n.queue != nil {
		n.queue.close()
	}
	for _, l := range n.TCP {
		l.Close() //nolint:errcheck // nothing is written
	}
	for _, d := range n.DNS {
		if d.UDP != nil {
			d.UDP.Close() //nolint:errcheck // as above
		}
		if d.TCP != nil {
			d.TCP.Close() //nolint:errcheck // as above
		}
	}
	return n.ns.Close()
}

// Remove is Close, and takes the routes, the addresses and the table away: programs
// are told that the network is unreachable.
func (n *Namespace) Remove() error {
	err := within(n.ns, func() error {
		if err := removeLinks(); err != nil {
			return err
		}
		return removeTable()
	})
	if cerr := n.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("remove the network: %w", err)
	}
	return nil
}
