package network

import (
	"net"
	"net/netip"
	"testing"
)

func TestOwn(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		all := []netip.Addr{p.Addr()}
		if v4 := p.Addr().Unmap(); v4.Is4() {
			all = append(all, carrying("64:ff9b::", 12, v4), carrying("2002::1", 2, v4), carrying("::ffff:0:0", 12, v4))
		}
		for _, a := range all {
			if !own(a) {
				t.Errorf("%s is not the host's own", a)
			}
		}
	}
	for s, want := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "9.9.9.9": false, "64:ff9b::9.9.9.9": false, "::ffff:9.9.9.9": false, "2620:fe::9": false} {
		if got := own(netip.MustParseAddr(s)); got != want {
			t.Errorf("%s is own: %t", s, got)
		}
	}
}

// carrying has an IPv4 address in it, from that byte on.
func carrying(prefix string, at int, v4 netip.Addr) netip.Addr {
	b := netip.MustParseAddr(prefix).As16()
	copy(b[at:], v4.AsSlice())
	return netip.AddrFrom16(b)
}

func BenchmarkOwn(b *testing.B) {
	for b.Loop() {
		own(netip.MustParseAddr("127.0.0.1"))
	}
}
