package names

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// shown is a name as it is reported: as rules have it, or with escapes for what is
// not printable.
func shown(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// under says whether a name is the domain or in it.
func under(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, "."+domain)
}

// reversed returns the address that a name below in-addr.arpa or ip6.arpa is for.
func reversed(name string) (netip.Addr, bool) {
	if s, ok := strings.CutSuffix(name, ".in-addr.arpa"); ok {
		l := strings.Split(s, ".")
		if len(l) != 4 {
			return netip.Addr{}, false
		}
		a, err := netip.ParseAddr(l[3] + "." + l[2] + "." + l[1] + "." + l[0])
		return a, err == nil
	}
	s, ok := strings.CutSuffix(name, ".ip6.arpa")
	l := strings.Split(s, ".")
	if !ok || len(l) != 32 {
		return netip.Addr{}, false
	}
	var b [16]byte
	for i, digit := range l {
		v, err := strconv.ParseUint(digit, 16, 4)
		if err != nil || len(digit) != 1 {
			return netip.Addr{}, false
		}
		b[15-i/2] |= byte(v) << (4 * (i % 2))
	}
	return netip.AddrFrom16(b).Unmap(), true
}

// family is the type of query for addresses.
func family(v6 bool) uint16 {
	if v6 {
		return dns.TypeAAAA
	}
	return dns.TypeA
}
