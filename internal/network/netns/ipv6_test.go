package netns

import (
	"errors"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Where IPv6 is switched off there is none, and IPv4 is as elsewhere.
func TestNoIPv6(t *testing.T) {
	b := newBox(t)
	b.do(func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/lo/disable_ipv6", []byte("1"), 0)
	})
	n := b.open(Options{Decide: (*Packet).Accept})
	connections := b.acceptAll(n)
	if len(n.TCP) != 1 || len(n.DNS) != 1 {
		t.Errorf("%d listeners and %d of DNS", len(n.TCP), len(n.DNS))
	}
	if _, err := b.dial(net.Dialer{}, "tcp", outside[0]); err != nil {
		t.Error(err)
	}
	wait(t, connections)
	if _, err := b.dial(net.Dialer{}, "tcp", outside[1]); !errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("IPv6: %v", err)
	}
	if err := n.Remove(); err != nil {
		t.Error(err)
	}
}
