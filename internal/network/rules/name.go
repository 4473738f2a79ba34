package rules

import (
	"net/netip"
	"strings"
)

// literal is the address that stands where a name could, with or without brackets.
func literal(s string) (netip.Addr, bool) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		s = strings.TrimSuffix(inner, "]")
	}
	a, err := netip.ParseAddr(s)
	return a, err == nil
}

// parents are the names that a name is below, longest first.
func parents(name string, each func(string)) {
	for {
		var more bool
		if _, name, more = strings.Cut(name, "."); !more {
			return
		}
		each(name)
	}
}
