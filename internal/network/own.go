package network

import (
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// own tells whether an address is one of the host's own. The kernel is asked each
// time where it would send to, some 20 µs: it knows of addresses that no interface
// has, those of load balancers for one, and of a change at once. If it cannot be
// asked the address is the host's.
func own(a netip.Addr) bool {
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
