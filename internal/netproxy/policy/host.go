package policy

import (
	"net/netip"
	"strings"
)

// Host is the name or address that a connection is for, in the form in which
// rules see it: in lower case, without brackets and final dot.
type Host struct {
	name string
	addr netip.Addr // valid if it is an address
}

// maxHost is the longest name of the domain system, and longer than any address.
const maxHost = 253

// ParseHost reads a host as it stands in a request. It is not one if it could
// not be told from something else in a name look-up or in a message.
func ParseHost(s string) (h Host, ok bool) {
	inner, open := strings.CutPrefix(s, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if open != closed || open && !strings.Contains(inner, ":") {
		return Host{}, false
	}
	name := strings.ToLower(strings.TrimSuffix(inner, "."))
	if name == "" || len(name) > maxHost {
		return Host{}, false
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return Host{name: addr.String(), addr: addr}, addr.Zone() == ""
	}
	if name[0] == '.' || strings.HasSuffix(name, ".") || strings.Contains(name, "..") {
		return Host{}, false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return Host{}, false
		}
	}
	return Host{name: name}, true
}

// String is the host as it is reported.
func (h Host) String() string { return h.name }

// Addr is the address that the host is; it is not valid if the host is a name.
func (h Host) Addr() netip.Addr { return h.addr }

// local says whether the host is of this machine or its network on the face of
// it.
func (h Host) local() bool {
	if h.addr.IsValid() {
		return !Public(h.addr)
	}
	return h.name == "localhost"
}

// prefixes that are not the public network's, from IANA's registries of special
// addresses.
var private = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // between a carrier and its customers; Alibaba's metadata
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's metadata
	netip.MustParsePrefix("169.254.0.0/16"),   // and everybody else's
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/128"),
	netip.MustParsePrefix("::1/128"),
	netip.MustParsePrefix("fc00::/7"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("ff00::/8"),
}

// embedding prefixes carry an IPv4 address that a gateway may connect to, from
// the byte given on.
var embedding = []struct {
	netip.Prefix
	at int
}{
	{netip.MustParsePrefix("::/96"), 12},
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
}

// Public says whether an address is one of the public network.
func Public(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, p := range private {
		if p.Contains(addr) {
			return false
		}
	}
	for _, e := range embedding {
		if e.Contains(addr) {
			b := addr.As16()
			return Public(netip.AddrFrom4([4]byte(b[e.at : e.at+4])))
		}
	}
	return addr.IsValid()
}
