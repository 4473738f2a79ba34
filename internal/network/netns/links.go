package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// family is what there is once for IPv4 and once for IPv6.
type family struct {
	proto          byte // unix.NFPROTO_…
	suffix         string
	guest, gateway netip.Addr
	any            netip.Prefix
	dst            uint32 // where the destination is in the header, in bytes
}

var (
	ipv4 = family{unix.NFPROTO_IPV4, "4", Guest4, Gateway4, netip.MustParsePrefix("0.0.0.0/0"), 16}
	ipv6 = family{unix.NFPROTO_IPV6, "6", Guest6, Gateway6, netip.MustParsePrefix("::/0"), 24}
)

// addAddresses gives the loopback of the thread's namespace its addresses, and
// returns the families that the kernel has. Without IPv6 there is no socket of it
// that something could leave by.
func addAddresses() ([]family, error) {
	h, lo, err := loopback()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if err := h.LinkSetUp(lo); err != nil {
		return nil, fmt.Errorf("set loopback up: %w", err)
	}
	var families []family
	for _, f := range []family{ipv4, ipv6} {
		err := f.addAddresses(h, lo)
		switch {
		case err == nil:
			families = append(families, f)
		case f.proto == unix.NFPROTO_IPV6 && noIPv6(err):
		default:
			return nil, err
		}
	}
	return families, nil
}

func (f family) addAddresses(h *netlink.Handle, lo netlink.Link) error {
	for _, a := range []netip.Addr{f.guest, f.gateway} {
		// There is nobody who could have the address as well.
		err := h.AddrAdd(lo, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, a.BitLen())), Flags: unix.IFA_F_NODAD})
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add %v to loopback: %w", a, err)
		}
	}
	for _, a := range []netip.Addr{f.guest, f.gateway} {
		if err := awaitLocal(h, a); err != nil {
			return err
		}
	}
	return nil
}

// awaitLocal waits until the address is routed as a local one: the kernel does that
// a little after IPv6's was added, and before that sends its packets elsewhere.
func awaitLocal(h *netlink.Handle, a netip.Addr) error {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		routes, err := h.RouteGet(a.AsSlice())
		if err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("wait until %v is local: %w", a, errors.Join(err, context.DeadlineExceeded))
		}
	}
}

// noIPv6 tells if an address could not be added because the kernel has no IPv6, or
// has it switched off in the namespace.
func noIPv6(err error) bool {
	return errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EACCES)
}

// addRoutes sends every destination to the loopback, from the guest's address. That
// is the last step of opening: before it, connects are told that there is no route.
func addRoutes(families []family) error {
	h, lo, err := loopback()
	if err != nil {
		return err
	}
	defer h.Close()
	for _, f := range families {
		if err := h.RouteAdd(f.route(lo)); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add the route of IPv%s: %w", f.suffix, err)
		}
	}
	return nil
}

func (f family) route(lo netlink.Link) *netlink.Route {
	return &netlink.Route{LinkIndex: lo.Attrs().Index, Dst: ipNet(f.any), Src: f.guest.AsSlice()}
}

// removeLinks takes routes and addresses away, as far as they are there.
func removeLinks() error {
	h, lo, err := loopback()
	if err != nil {
		return err
	}
	defer h.Close()
	for _, f := range []family{ipv4, ipv6} {
		if err := h.RouteDel(f.route(lo)); err != nil && !gone(err) {
			return fmt.Errorf("remove the route of IPv%s: %w", f.suffix, err)
		}
		for _, a := range []netip.Addr{f.guest, f.gateway} {
			err := h.AddrDel(lo, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, a.BitLen()))})
			if err != nil && !gone(err) {
				return fmt.Errorf("remove %v from loopback: %w", a, err)
			}
		}
	}
	return nil
}

func gone(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.ENOENT) || noIPv6(err)
}

// loopback opens netlink in the thread's namespace.
func loopback() (*netlink.Handle, netlink.Link, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, nil, fmt.Errorf("open netlink: %w", err)
	}
	lo, err := h.LinkByName("lo")
	if err != nil {
		h.Close()
		return nil, nil, fmt.Errorf("find loopback: %w", err)
	}
	return h, lo, nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
