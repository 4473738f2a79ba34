package netns

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// frame puts a packet on the loopback as if it came in there.
func (b box) frame(ethertype uint16, packet []byte) {
	b.t.Helper()
	b.do(func() error {
		lo, err := net.InterfaceByName("lo")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		head := binary.BigEndian.AppendUint16(make([]byte, 12), ethertype)
		return unix.Sendto(fd, append(head, packet...), 0, &unix.SockaddrLinklayer{Ifindex: lo.Index, Halen: 6})
	})
}

// Frames of AF_PACKET pass by what looks at packets that leave. They reach nothing
// but the namespace's own addresses, and what answers them is stopped or comes to
// nobody.
func TestFrames(t *testing.T) {
	b := newBox(t)
	asked := make(chan Flow, 64)
	n := b.open(Options{Decide: func(p *Packet) {
		asked <- p.Flow
		p.Accept()
	}})
	connections := b.acceptAll(n)
	to4, to6 := netip.MustParseAddr(outside4), netip.MustParseAddr(outside6)
	listeners := [2]uint16{}
	for i, l := range n.TCP {
		listeners[i] = l.Addr().(*net.TCPAddr).AddrPort().Port()
	}
	for _, src := range []netip.Addr{Guest4, Gateway4, to4, netip.MustParseAddr("127.0.0.1")} {
		for _, dst := range []netip.Addr{to4, Gateway4, netip.MustParseAddr("127.0.0.1")} {
			for _, flags := range []byte{flagSyn, flagAck} {
				b.frame(unix.ETH_P_IP, summed(packet4(toPort(segment(flags, src, dst), listeners[0]), unix.IPPROTO_TCP, 0, src, dst)))
			}
		}
	}
	for _, src := range []netip.Addr{Guest6, Gateway6, to6, netip.IPv6Loopback()} {
		for _, dst := range []netip.Addr{to6, Gateway6, netip.IPv6Loopback()} {
			for _, flags := range []byte{flagSyn, flagAck} {
				b.frame(unix.ETH_P_IPV6, packet6(toPort(segment(flags, src, dst), listeners[1]), unix.IPPROTO_TCP, src, dst))
			}
		}
	}
	for i, to := range outside {
		c, err := b.dial(net.Dialer{}, "tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		if in := wait(t, connections); in.original.String() != to || in.RemoteAddr().String() != c.LocalAddr().String() {
			t.Errorf("%d: from %v to %v", i, in.RemoteAddr(), in.original)
		}
		if f := wait(t, asked); f.Dst.String() != to {
			t.Errorf("%d: asked about %+v", i, f)
		}
	}
	if len(connections)+len(asked) != 0 {
		t.Errorf("%d connections and %d questions beyond that", len(connections), len(asked))
	}
	// The flow of a frame is one that the kernel knows then: it stays the gateway's own.
	from := &net.TCPAddr{IP: Guest6.AsSlice(), Port: 4000}
	_, err := b.dial(net.Dialer{LocalAddr: from, Control: reuse}, "tcp", n.TCP[1].Addr().String())
	if err == nil {
		if in := wait(t, connections); in.original.Addr() != Gateway6 {
			t.Errorf("from a frame's address to %v", in.original)
		}
	} else if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("from a frame's address: %v", err)
	}
}

// toPort gives a segment another destination port, and keeps its checksum right.
func toPort(b []byte, port uint16) []byte {
	old := binary.BigEndian.Uint16(b[2:])
	sum := uint32(^binary.BigEndian.Uint16(b[16:])) + uint32(^old) + uint32(port)
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(b[2:], port)
	binary.BigEndian.PutUint16(b[16:], ^uint16(sum))
	return b
}

// summed fills in the length and checksum of a header of IPv4.
func summed(b []byte) []byte {
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum))
	return b
}
