package names

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// canonical returns a name in the form in which policies and pins have it.
func canonical(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// hostname returns a name in its canonical form, and whether a host, a service or a
// domain can have it. What else DNS allows would be written with escapes, and could
// be read as another name by whoever decides.
func hostname(name string) (string, bool) {
	name = canonical(name)
	if len(name) == 0 || len(name) > 253 {
		return name, false
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if len(label) == 0 || len(label) > 63 {
			return name, false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return name, false
			}
		}
		last = label
	}
	// There is no such top-level domain, and what ends so may be taken for an address.
	return name, last[0] < '0' || last[0] > '9'
}

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
