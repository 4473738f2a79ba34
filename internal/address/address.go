// Package address tells the addresses of the public network from those that mean
// something else: this machine, its network, a cloud's metadata service. It knows
// no machine, so that the host's own addresses are the caller's to add.
package address

import "net/netip"

// Kind is what an address is for.
type Kind int

// The kinds.
const (
	Public Kind = iota
	Metadata
	Loopback
	LinkLocal
	Private
	Reserved
)

// String is the kind as logs and explanations have it.
func (k Kind) String() string {
	return [...]string{"public", "metadata", "loopback", "link-local", "private", "reserved"}[k]
}

// Class is an address's kind, and the range of its kind that it lies in, which is
// not valid for a public address. An address that carries an IPv4 address for a
// gateway is of that one's kind. Zones do not count; no address is reserved.
func Class(a netip.Addr) (Kind, netip.Prefix) {
	a = a.Unmap().WithZone("")
	if !a.IsValid() {
		return Reserved, netip.Prefix{}
	}
	if metadata[a] {
		return Metadata, netip.PrefixFrom(a, a.BitLen())
	}
	for _, r := range ranges {
		if r.Contains(a) {
			return r.kind, r.Prefix
		}
	}
	if a.Is4() {
		return Public, netip.Prefix{}
	}
	if inner, at, ok := carried(a); ok {
		kind, within := Class(inner)
		if kind == Public {
			return Public, netip.Prefix{}
		}
		outer, _ := a.Prefix(8*at + within.Bits()) // at most 128
		return kind, outer
	}
	if global.Contains(a) {
		return Public, netip.Prefix{}
	}
	return Reserved, netip.PrefixFrom(a, a.BitLen())
}

// Carried is the IPv4 address that an IPv6 address carries for a gateway, which may
// connect to it.
func Carried(a netip.Addr) (v4 netip.Addr, ok bool) {
	if a = a.Unmap(); a.Is4() {
		return netip.Addr{}, false
	}
	v4, _, ok = carried(a.WithZone(""))
	return v4, ok
}

// carried is Carried, and says at which byte.
func carried(a netip.Addr) (v4 netip.Addr, at int, ok bool) {
	for _, e := range embedding {
		if e.Contains(a) {
			b := a.As16()
			return netip.AddrFrom4([4]byte(b[e.at : e.at+4])), e.at, true
		}
	}
	return netip.Addr{}, 0, false
}

// IsPublic says whether an address is one of the public network.
func IsPublic(a netip.Addr) bool {
	kind, _ := Class(a)
	return kind == Public
}
