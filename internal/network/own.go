package network

import (
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/address"
)

// own tells whether an address is one of the host's own, or carries one that a gateway
// (NAT64, 6to4) would connect to.
func own(a netip.Addr) bool {
	a = a.Unmap()
	if v4, ok := address.Carried(a); ok && local(v4) {
		return true
	}
	return local(a)
}

// local tells whether the kernel keeps what is sent to an address. It is asked each
// time where it would send to, some 20 µs: it knows of addresses that no interface
// has, those of load balancers for one, and of a change at once. If it cannot be
// asked the address is the host's.
func local(a netip.Addr) bool {
	routes, err := netlink.RouteGet(a.AsSlice())
	switch {
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EACCES):
		return false // no route, or one that says so
	case err != nil || len(routes) == 0:
		return true
	}
	for _, r := range routes {
		if r.Type == unix.RTN_LOCAL || r.Type == unix.RTN_ANYCAST {
			return true
		}
	}
	return false
}
