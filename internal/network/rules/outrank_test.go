package rules

import (
	"strings"
	"testing"
)

// A rule that denies says when it does not do so, and else nothing.
func TestOutranked(t *testing.T) {
	for denies, by := range map[string]map[string]bool{
		"10.20.0.5/32":  {"10.20.0.5:5432": true, "10.20.0.5": false, "10.20.0.6:5432": false, "10.20.0.0/16:5432": false, "a.example": false, "*": false},
		"10.20.0.5:22":  {"10.20.0.5:5432": false, "10.20.0.5:20-30": false, "10.20.0.5:20-30/tcp": true, "10.20.0.5:20-30/udp": true},
		"10.0.0.0/8":    {"10.1.0.0/16": true, "10.0.0.0/8:1": true, "10.0.0.0/7": false, "11.1.0.0/16": false},
		"a.example":     {"a.example": false, "a.example:443": true, "a.example/tls": true, "*.example:443": false, "b.example:443": false},
		"*.example":     {"a.example": true, "*.b.example": true, "*.example": false, "*.example:1": true, "example:443": false, "anexample:443": false, "1.1.1.1": false},
		"*":             {"a.example": true, "*.example": true, "1.1.1.1": true, "*": false, "*:22": true, "0.0.0.0/0:22": true},
		"0.0.0.0/0":     {"1.1.1.1": true, "fd00::/8": false, "a.example": false},
		"a.example/udp": {"a.example": false, "a.example:443": false, "a.example:443/udp": true},
	} {
		for allows, outranks := range by {
			list := policy(t, Rules, "+"+allows, "-"+denies)
			list.VEth = true
			lines := compile(t, list).Outranked(1)
			want := "rule 2 does not deny what rule 1 allows, which stands above it: allow "
			if got := len(lines) == 1 && strings.HasPrefix(lines[0], want); got != outranks || len(lines) > 1 {
				t.Errorf("allow %s, deny %s: %q", allows, denies, lines)
			}
			if lines := compile(t, list).Outranked(2); len(lines) > 0 {
				t.Errorf("of no rule it says %q", lines)
			}
		}
	}
}
