package address

import (
	"net/netip"
	"strings"
	"testing"
)

func TestClass(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0": "loopback 0.0.0.0/8", "127.0.0.2": "loopback 127.0.0.0/8", "::": "loopback ::/128", "::1": "loopback ::1/128",
		"10.1.2.3": "private 10.0.0.0/8", "172.16.0.1": "private 172.16.0.0/12", "172.32.0.1": "public", "192.168.1.1": "private 192.168.0.0/16",
		"100.64.0.1": "private 100.64.0.0/10", "100.128.0.1": "public", "fc00::1": "private fc00::/7", "fec0::1": "private fec0::/10",
		"169.254.1.1": "link-local 169.254.0.0/16", "fe80::1": "link-local fe80::/10", "fe80::1%eth0": "link-local fe80::/10",
		"192.0.0.1": "reserved 192.0.0.0/24", "192.0.2.2": "reserved 192.0.2.0/24", "224.0.0.1": "reserved 224.0.0.0/4", "ff02::1": "reserved ff00::/8",
		"255.255.255.255": "reserved 240.0.0.0/4", "2001:db8::1": "reserved 2001:db8::/32", "2001:0:7f00:1::": "reserved 2001::/32",
		"4000::1": "reserved 4000::1/128", "1.1.1.1": "public", "2606:4700::1": "public", "192.88.99.1": "public",
		"169.254.169.254": "metadata 169.254.169.254/32", "fd00:ec2::254": "metadata fd00:ec2::254/128", "100.100.100.200": "metadata 100.100.100.200/32",
		"168.63.129.16": "metadata 168.63.129.16/32", "168.63.129.17": "public", "fd20:ce::254": "metadata fd20:ce::254/128", "fe80::a9fe:a9fe%2": "metadata fe80::a9fe:a9fe/128",
		"::ffff:127.0.0.1": "loopback 127.0.0.0/8", "::ffff:8.8.8.8": "public", "::7f00:1": "loopback ::7f00:0/104",
		"64:ff9b::7f00:1": "loopback 64:ff9b::7f00:0/104", "64:ff9b::808:808": "public", "64:ff9b::a9fe:a9fe": "metadata 64:ff9b::a9fe:a9fe/128",
		"64:ff9b:1::10.0.0.1": "private 64:ff9b:1::a00:0/104", "::ffff:0:7f00:1": "loopback ::ffff:0:7f00:0/104",
		"2002:7f00:1::": "loopback 2002:7f00::/24", "2002:a9fe:a9fe:1::1": "metadata 2002:a9fe:a9fe::/48", "2002:808:808::": "public",
	} {
		kind, prefix := Class(netip.MustParseAddr(addr))
		got := kind.String()
		if prefix.IsValid() {
			got += " " + prefix.String()
		}
		if got != want {
			t.Errorf("%s is %s, want %s", addr, got, want)
		}
	}
	if kind, _ := Class(netip.Addr{}); kind != Reserved || IsPublic(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// A range has its address in it, and all of its addresses but metadata services
// are of its kind.
func FuzzClass(f *testing.F) {
	for _, s := range strings.Fields("1.1.1.1 10.0.0.1 ::1 ::ffff:10.0.0.1 64:ff9b::a9fe:a9fe 2002:a00:1:: 4000::1 2001::1") {
		b := netip.MustParseAddr(s).AsSlice()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		kind, prefix := Class(a)
		if mapped, _ := Class(netip.AddrFrom16(a.As16())); mapped != kind {
			t.Errorf("%s is %s, and %s mapped", a, kind, mapped)
		}
		if kind == Public {
			return
		}
		if !prefix.Contains(a.Unmap()) {
			t.Errorf("%s is not in %s", a, prefix)
		}
		if first, _ := Class(prefix.Masked().Addr()); first != kind && first != Metadata {
			t.Errorf("%s is %s, and %s begins with %s", a, kind, prefix, first)
		}
	})
}

func TestIsPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"0.0.0.0": false, "10.1.2.3": false, "127.0.0.2": false, "169.254.169.254": false, "172.16.0.1": false, "172.32.0.1": true,
		"100.64.0.1": false, "100.128.0.1": true, "192.0.2.2": false, "198.51.100.1": false, "203.0.113.1": false, "198.18.0.1": false,
		"192.0.0.1": false, "192.88.99.1": true, "192.168.1.1": false, "224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"168.63.129.16": false, "1.1.1.1": true, "::": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:8.8.8.8": true,
		"::7f00:1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "2606:4700::1": true,
		"64:ff9b::7f00:1": false, "64:ff9b::808:808": true, "::ffff:0:7f00:1": false, "::ffff:0:808:808": true, "2002:7f00:1::": false, "2002:808:808::": true,
	} {
		if got := IsPublic(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	if IsPublic(netip.Addr{}) {
		t.Error("no address is public")
	}
}
