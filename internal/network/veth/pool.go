package veth

import (
	"fmt"
	"net/netip"
)

// pool has a pair of addresses of each family for every link.
type pool struct{ v4, v6 netip.Prefix }

// pair is the addresses of a link.
type pair struct{ host4, guest4, host6, guest6 netip.Addr }

func newPool(v4, v6 netip.Prefix) (pool, error) {
	if !v4.Addr().Is4() || v4.Bits() < 8 || v4.Bits() > 28 {
		return pool{}, fmt.Errorf("veth_v4: %v is not a prefix of IPv4 of /8 to /28", v4)
	}
	if !v6.Addr().Is6() || v6.Addr().Is4In6() || v6.Bits() < 32 || v6.Bits() > 112 {
		return pool{}, fmt.Errorf("veth_v6: %v is not a prefix of IPv6 of /32 to /112", v6)
	}
	return pool{v4.Masked(), v6.Masked()}, nil
}

// size is how many pairs there are, without the first and the last, whose addresses
// look like a network's and a broadcast. Their index fits four hexadecimal digits,
// and two addresses each into 16 bits.
func (p pool) size() int { return 1<<min(31-p.v4.Bits(), 15) - 2 }

// pair is that of an index from 1 to size.
func (p pool) pair(i int) pair {
	a4, a6 := p.v4.Addr().As4(), p.v6.Addr().As16()
	at := func(k int) (netip.Addr, netip.Addr) {
		b4, b6 := a4, a6
		b4[2] |= byte(k >> 8)
		b4[3] |= byte(k)
		b6[14] |= byte(k >> 8)
		b6[15] |= byte(k)
		return netip.AddrFrom4(b4), netip.AddrFrom16(b6)
	}
	var x pair
	x.host4, x.host6 = at(2 * i)
	x.guest4, x.guest6 = at(2*i + 1)
	return x
}
