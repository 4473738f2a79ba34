package veth

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/netns"
)

// namePrefix is that of all interfaces of this package. After it come 8 digits for
// the instance, "-", and 4 for the link: the 15 characters that there are.
const namePrefix = "xs"

// plug makes both ends. The guest's is the last to be up.
func (l *Link) plug(v6 bool) error {
	if err := deleteLink(l.name); err != nil {
		return err
	}
	// One that the namespace has already is in the way.
	if err := netns.Within(l.opts.Netns, func() error { return deleteLink(netns.Link) }); err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = l.name, l.mac(0)
	err := netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs, PeerName: netns.Link, PeerHardwareAddr: l.mac(1), PeerNamespace: netlink.NsFd(l.opts.Netns.Fd()),
	})
	if err != nil {
		return fmt.Errorf("make %s: %w", l.name, err)
	}
	ends := l.ends(v6)
	if err := l.setUp(l.name, l.mac(1), hostSettings, ends, false); err != nil {
		return err
	}
	err = netns.Within(l.opts.Netns, func() error {
		for i := range ends {
			ends[i].local, ends[i].remote = ends[i].remote, ends[i].local
		}
		return l.setUp(netns.Link, l.mac(0), guestSettings, ends, true)
	})
	if err != nil {
		return err
	}
	return awaitUp(l.name)
}

// mac is the address of an end. Both are known to both, so that nothing has to be
// asked for over the link.
func (l *Link) mac(end byte) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0x65, 0x78, byte(l.index >> 8), byte(l.index), end}
}

// end is a family's addresses, as one end has them.
type end struct {
	family        int
	local, remote netip.Addr
}

func (l *Link) ends(v6 bool) []end {
	all := []end{{netlink.FAMILY_V4, l.host4, l.guest4}}
	if v6 {
		all = append(all, end{netlink.FAMILY_V6, l.host6, l.guest6})
	}
	return all
}

// setUp gives an end its addresses and routes. The end is that of the thread's
// namespace.
func (l *Link) setUp(name string, remote net.HardwareAddr, settings []setting, ends []end, guest bool) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	if !guest {
		if err := netlink.LinkSetAlias(link, l.opts.Name); err != nil {
			return fmt.Errorf("describe %s: %w", name, err)
		}
	}
	if err := apply(name, settings); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	for _, e := range ends {
		err := e.setUp(link, remote, guest)
		if guest && e.family == netlink.FAMILY_V6 && errors.Is(err, unix.EACCES) {
			continue // IPv6 is switched off in the namespace
		}
		if err != nil {
			return fmt.Errorf("set %s up: %w", name, err)
		}
	}
	return nil
}

func (e end) setUp(link netlink.Link, remote net.HardwareAddr, guest bool) error {
	i := link.Attrs().Index
	// Nobody else is there who could have the address.
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: host(e.local), Flags: unix.IFA_F_NODAD}); err != nil {
		return fmt.Errorf("add %v: %w", e.local, err)
	}
	err := netlink.NeighSet(&netlink.Neigh{
		LinkIndex: i, Family: e.family, State: netlink.NUD_PERMANENT, IP: e.remote.AsSlice(), HardwareAddr: remote,
	})
	if err != nil {
		return fmt.Errorf("add the neighbour %v: %w", e.remote, err)
	}
	near := netlink.Route{LinkIndex: i, Dst: host(e.remote), Scope: netlink.SCOPE_LINK, Src: e.local.AsSlice()}
	if guest {
		near.Table = routeTable
	}
	if err := netlink.RouteReplace(&near); err != nil {
		return fmt.Errorf("add the route to %v: %w", e.remote, err)
	}
	if !guest {
		return nil
	}
	far := near
	far.Dst, far.Scope, far.Gw, far.Flags = all(e.family), netlink.SCOPE_UNIVERSE, e.remote.AsSlice(), int(netlink.FLAG_ONLINK)
	if err := netlink.RouteReplace(&far); err != nil {
		return fmt.Errorf("add the route: %w", err)
	}
	if err := addRules(e.family); err != nil {
		return err
	}
	return awaitLocal(e.local)
}
