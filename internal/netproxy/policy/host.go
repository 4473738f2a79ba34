package policy

import (
	"net/netip"
	"strings"

	"github.com/exec-server/exec-server/internal/address"
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
		return !address.IsPublic(h.addr)
	}
	return h.name == "localhost"
}
