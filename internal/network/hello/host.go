package hello

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/exec-server/exec-server/internal/address"
)

// Host reads what HTTP has for a host: NAME, ADDRESS or [ADDRESS], and a port behind
// a colon. Names are as address.Name gives them, addresses in their shortest form without
// brackets; a port that is not there is 0.
func Host(s string) (host string, port uint16, ok bool) {
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		n, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil || n == 0 {
			return "", 0, false
		}
		s, port = s[:i], uint16(n)
	}
	inner, v6 := strings.CutPrefix(s, "[")
	if v6 {
		if inner, ok = strings.CutSuffix(inner, "]"); !ok {
			return "", 0, false
		}
	}
	if a, err := netip.ParseAddr(inner); err == nil {
		if a.Is6() != v6 || a.Zone() != "" {
			return "", 0, false
		}
		return a.Unmap().String(), port, true
	}
	if v6 {
		return "", 0, false
	}
	host, ok = address.Name(s)
	return host, port, ok
}
