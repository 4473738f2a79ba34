package netns

import (
	"errors"
	"net"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Servers in the sandbox are reached as without a policy, and nobody is asked.
func TestLocalServers(t *testing.T) {
	b := newBox(t)
	b.open(Options{Decide: func(p *Packet) {
		t.Errorf("asked about %+v", p.Flow)
		p.Refuse()
	}})
	for _, s := range []struct {
		bound string
		port  int
		at    []string
	}{
		{"127.0.0.1", 0, []string{"127.0.0.1"}},
		{"::1", 0, []string{"::1"}},
		{"0.0.0.0", 0, []string{"127.0.0.1", Guest4.String()}},
		{"::", 0, []string{"::1", "127.0.0.1", Guest6.String(), Guest4.String()}},
		{Guest4.String(), 53, []string{Guest4.String()}},
		{"127.0.0.1", 53, []string{"127.0.0.1"}},
		{"::1", 53, []string{"::1"}},
	} {
		var l net.Listener
		var p net.PacketConn
		b.do(func() (err error) {
			if l, err = net.Listen("tcp", net.JoinHostPort(s.bound, strconv.Itoa(s.port))); err != nil {
				return err
			}
			p, err = net.ListenPacket("udp", l.Addr().String())
			return err
		})
		_, port, _ := net.SplitHostPort(l.Addr().String())
		for _, at := range s.at {
			if _, err := b.dial(net.Dialer{}, "tcp", net.JoinHostPort(at, port)); err != nil {
				t.Errorf("bound to %s, at %s: %v", s.bound, at, err)
			}
			c, err := b.dial(net.Dialer{}, "udp", net.JoinHostPort(at, port))
			if err != nil {
				t.Errorf("bound to %s, at %s: %v", s.bound, at, err)
				continue
			}
			c.Write([]byte("x"))
			buf := make([]byte, 1)
			_, from, err := p.ReadFrom(buf)
			if err != nil {
				t.Fatal(err)
			}
			p.WriteTo(buf, from)
			if _, err := c.Read(buf); err != nil {
				t.Errorf("bound to %s, datagrams at %s: %v", s.bound, at, err)
			}
		}
		l.Close()
		p.Close()
	}
	if _, err := b.dial(net.Dialer{}, "tcp", "127.0.0.1:1"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("where nobody listens: %v", err)
	}
}

// The gateway has nothing but DNS: whoever connects to a listener's own address and
// port is refused, whatever its packets are marked with.
func TestGatewayIsClosed(t *testing.T) {
	b := newBox(t)
	n := b.open(Options{Decide: (*Packet).Accept})
	connections := b.acceptAll(n)
	var at []string
	for i := range n.TCP {
		at = append(at, n.TCP[i].Addr().String(), n.DNS[i].TCP.Addr().String())
	}
	for _, a := range append(at, Gateway4.String()+":80", "["+Gateway6.String()+"]:80") {
		for _, mark := range []int{0, markAccepted, markRefused} {
			if _, err := b.dial(net.Dialer{Control: marking(mark)}, "tcp", a); !errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("%s, mark %d: %v", a, mark, err)
			}
		}
	}
	if len(connections) != 0 {
		t.Errorf("%d connections came to the listeners", len(connections))
	}
}
