package veth

import (
	"net/netip"
	"testing"
)

func TestPool(t *testing.T) {
	for _, s := range []struct {
		v4, v6 string
		size   int
		last   string
	}{
		{"10.213.0.0/16", "fd65:7865:64::/64", 32766, "10.213.255.252 10.213.255.253 fd65:7865:64::fffc fd65:7865:64::fffd"},
		{"10.213.1.2/16", "fd65::1/112", 32766, "10.213.255.252 10.213.255.253 fd65::fffc fd65::fffd"},
		{"10.0.0.0/8", "fd65::/32", 32766, "10.0.255.252 10.0.255.253 fd65::fffc fd65::fffd"},
		{"192.168.7.32/28", "fd65::/112", 6, "192.168.7.44 192.168.7.45 fd65::c fd65::d"},
	} {
		p, err := newPool(netip.MustParsePrefix(s.v4), netip.MustParsePrefix(s.v6))
		if err != nil || p.size() != s.size {
			t.Errorf("%s: %d pairs, %v", s.v4, p.size(), err)
			continue
		}
		seen := map[netip.Addr]bool{}
		var last string
		for i := 1; i <= p.size(); i++ {
			x := p.pair(i)
			last = x.host4.String() + " " + x.guest4.String() + " " + x.host6.String() + " " + x.guest6.String()
			for _, a := range []netip.Addr{x.host4, x.guest4, x.host6, x.guest6} {
				if seen[a] || !p.v4.Contains(a) && !p.v6.Contains(a) {
					t.Fatalf("%s: %v of pair %d", s.v4, a, i)
				}
				seen[a] = true
			}
		}
		if last != s.last {
			t.Errorf("%s: the last is %s", s.v4, last)
		}
	}
	for _, s := range [][2]string{
		{"10.0.0.0/7", "fd65::/64"}, {"10.0.0.0/29", "fd65::/64"}, {"fd66::/16", "fd65::/64"},
		{"10.0.0.0/16", "fd65::/31"}, {"10.0.0.0/16", "fd65::/113"}, {"10.0.0.0/16", "10.1.0.0/16"}, {"10.0.0.0/16", "::ffff:10.1.0.0/112"},
	} {
		if _, err := Open(Options{V4: netip.MustParsePrefix(s[0]), V6: netip.MustParsePrefix(s[1])}); err == nil {
			t.Errorf("%s is allowed", s)
		}
	}
}
