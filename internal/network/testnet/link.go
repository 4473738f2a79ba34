package testnet

import (
	"errors"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The ends of the link.
const (
	hostLink  = "eth0"
	worldLink = "world"
)

// link is the only way out of the host.
type link struct{ host *Space }

// connect links the two, gives the host its addresses and routes, and makes every
// other address one of the world's own.
func connect(host, world *Space) (*link, error) {
	err := host.Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = hostLink
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: worldLink, PeerNamespace: netlink.NsFd(world.file.Fd())})
	})
	if err != nil {
		return nil, err
	}
	l := &link{host}
	err = errors.Join(host.Do(setUpHost), world.Do(setUpWorld))
	// The routes of the host need the other end up.
	if err == nil {
		err = host.Do(func() error {
			return routes(hostLink, netlink.Route{Gw: Gateway.AsSlice()}, netlink.Route{Gw: Gateway6.AsSlice()})
		})
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close removes both ends.
func (l *link) Close() error {
	return l.host.Do(func() error {
		end, err := netlink.LinkByName(hostLink)
		if err != nil {
			return err
		}
		return netlink.LinkDel(end)
	})
}

func setUpHost() error {
	return addresses(hostLink, netip.PrefixFrom(Host, 24), netip.PrefixFrom(HostPublic, 32), netip.PrefixFrom(Host6, 64))
}

func setUpWorld() error {
	// For answers to datagrams, which come from the address that was asked.
	err := os.WriteFile("/proc/sys/net/ipv6/ip_nonlocal_bind", []byte("1"), 0)
	if err != nil {
		return err
	}
	if err := addresses(worldLink, netip.PrefixFrom(Gateway, 24), netip.PrefixFrom(Gateway6, 64)); err != nil {
		return err
	}
	if err := routes(worldLink, netlink.Route{Dst: prefix(netip.PrefixFrom(HostPublic, 32))}); err != nil {
		return err
	}
	// In the main table, where the host's own prefixes are more specific.
	local := netlink.Route{Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_MAIN, Scope: unix.RT_SCOPE_HOST}
	local4, local6 := local, local
	local4.Dst, local6.Dst = prefix(netip.MustParsePrefix("0.0.0.0/0")), prefix(netip.MustParsePrefix("::/0"))
	if err := routes("lo", local4, local6); err != nil {
		return err
	}
	for _, p := range []netip.Prefix{netip.PrefixFrom(Nowhere, 24), netip.PrefixFrom(Nowhere6, 48)} {
		if err := netlink.RouteAdd(&netlink.Route{Type: unix.RTN_BLACKHOLE, Dst: prefix(p.Masked())}); err != nil {
			return err
		}
	}
	return nil
}

// addresses gives an interface its addresses and sets it up. They are there at
// once: nobody looks for duplicates.
func addresses(name string, all ...netip.Prefix) error {
	end, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	for _, file := range []string{"accept_ra", "router_solicitations"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/"+file, []byte("0"), 0); err != nil {
			return err
		}
	}
	for _, p := range all {
		a := &netlink.Addr{IPNet: prefix(p)}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(end, a); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(end)
}

func routes(name string, all ...netlink.Route) error {
	end, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	for _, r := range all {
		r.LinkIndex = end.Attrs().Index
		if err := netlink.RouteAdd(&r); err != nil {
			return err
		}
	}
	return nil
}

func prefix(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
