package veth

import (
	"fmt"
	"net/netip"
	"regexp"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
)

// anybodys matches the links of all daemons.
var anybodys = regexp.MustCompile(`^` + namePrefix + `[0-9a-f]{8}-[0-9a-f]{4}$`)

// overlap is an error if the host's network has some of the pool's addresses.
func (h *Host) overlap() error {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := netlink.RouteList(nil, family)
		if err != nil {
			return fmt.Errorf("list routes: %w", err)
		}
		for _, r := range routes {
			p, ok := prefixOf(r)
			if !ok || !p.Overlaps(h.pool.v4) && !p.Overlaps(h.pool.v6) {
				continue
			}
			if l, err := netlink.LinkByIndex(r.LinkIndex); err == nil && anybodys.MatchString(l.Attrs().Name) {
				continue
			}
			return fmt.Errorf("the host has a route to %v: set veth_v4 and veth_v6 to prefixes that nobody uses", p)
		}
	}
	return nil
}

// prefixOf is where a route leads; the default ones do not count.
func prefixOf(r netlink.Route) (netip.Prefix, bool) {
	if r.Dst == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(r.Dst.IP)
	bits, _ := r.Dst.Mask.Size()
	p := netip.PrefixFrom(a, bits)
	return p, ok && bits > 0
}

// Hindrances says which rules of others stand in the way of what links send.
func Hindrances() (all []string) {
	c, err := nftables.New()
	if err != nil {
		return nil
	}
	chains, err := c.ListChains()
	if err != nil {
		return nil
	}
	for _, x := range chains {
		if x.Hooknum != nil && *x.Hooknum == *nftables.ChainHookForward && x.Policy != nil && *x.Policy == nftables.ChainPolicyDrop {
			all = append(all, fmt.Sprintf("the chain %s of the table %s drops what is forwarded, unless it has rules for the interfaces %s*", x.Name, x.Table.Name, namePrefix))
		}
	}
	return all
}
