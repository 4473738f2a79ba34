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
		if p, err := netip.ParsePrefix(a.String()); err == nil && !own(p.Addr().Unmap()) {
			t.Errorf("%s is not the host's own", p.Addr())
		}
	}
	for s, want := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "9.9.9.9": false, "2620:fe::9": false} {
		if got := own(netip.MustParseAddr(s)); got != want {
			t.Errorf("%s is own: %t", s, got)
		}
	}
}

func BenchmarkOwn(b *testing.B) {
	for b.Loop() {
		own(netip.MustParseAddr("127.0.0.1"))
	}
}
