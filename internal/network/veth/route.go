package veth

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Where the namespace's routes are: what is neither TCP nor DNS looks into a table
// of its own, and then where all else does.
const (
	routeTable = 63080
	rulesFrom  = 1000
)

// addRules has all but TCP and DNS use the link. They stay in the namespace when the
// link goes; the table is empty then, and changes nothing.
func addRules(family int) error {
	for i, s := range []netlink.Rule{
		{Table: unix.RT_TABLE_MAIN, IPProto: unix.IPPROTO_TCP},
		{Table: unix.RT_TABLE_MAIN, IPProto: unix.IPPROTO_UDP, Dport: netlink.NewRulePortRange(53, 53)},
		{Table: routeTable},
	} {
		r := netlink.NewRule()
		r.Family, r.Priority, r.Table, r.IPProto, r.Dport = family, rulesFrom+i, s.Table, s.IPProto, s.Dport
		if err := netlink.RuleAdd(r); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add a rule of routing: %w", err)
		}
	}
	return nil
}

func host(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}

func all(family int) *net.IPNet {
	if family == netlink.FAMILY_V4 {
		return &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
	}
	return &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
}
