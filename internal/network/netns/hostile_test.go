package netns

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// A mark that a program sets counts for nothing.
func TestMarksOfPrograms(t *testing.T) {
	b := newBox(t)
	asked := make(chan Flow, 64)
	n := b.open(Options{Decide: func(p *Packet) {
		asked <- p.Flow
		p.Refuse()
	}})
	connections := b.acceptAll(n)
	for _, to := range outside {
		for _, mark := range []int{markAccepted, markRefused, -1} {
			if _, err := b.dial(net.Dialer{Control: marking(mark)}, "tcp", to); !errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("%s, mark %d: %v", to, mark, err)
			}
			wait(t, asked)
		}
	}
	if len(connections) != 0 {
		t.Errorf("%d connections came to the listeners", len(connections))
	}
}

// raw sends a packet that was made by hand, header and all.
func (b box) raw(packet []byte, to netip.Addr) error {
	return within(b.ns, func() error {
		domain, level, opt := unix.AF_INET, unix.SOL_IP, unix.IP_HDRINCL
		if to.Is6() {
			domain, level, opt = unix.AF_INET6, unix.SOL_IPV6, unix.IPV6_HDRINCL
		}
		fd, err := unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.SetsockoptInt(fd, level, opt, 1); err != nil {
			return err
		}
		return unix.Sendto(fd, packet, 0, sockaddr(to.String(), 0))
	})
}

// segment is a header of TCP from port 4000 to port 443, with a checksum.
func segment(flags byte, src, dst netip.Addr) []byte {
	b := make([]byte, 20)
	binary.BigEndian.PutUint16(b, 4000)
	binary.BigEndian.PutUint16(b[2:], 443)
	b[7], b[12], b[13], b[14] = 1, 5<<4, flags, 0x20
	sum := uint32(unix.IPPROTO_TCP + len(b))
	for _, part := range [][]byte{src.AsSlice(), dst.AsSlice(), b} {
		for i := 0; i < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(b[16:], ^uint16(sum))
	return b
}

// packet4 puts a header of IPv4 before a payload. fragment is its offset and flags.
func packet4(payload []byte, protocol byte, fragment uint16, src, dst netip.Addr) []byte {
	b := make([]byte, 20, 20+len(payload))
	b[0], b[5], b[8], b[9] = 4<<4|5, 77, 64, protocol
	binary.BigEndian.PutUint16(b[6:], fragment)
	copy(b[12:], src.AsSlice())
	copy(b[16:], dst.AsSlice())
	return append(b, payload...) // the kernel does length and checksum
}

// packet6 does it for IPv6. next is what the payload begins with.
func packet6(payload []byte, next byte, src, dst netip.Addr) []byte {
	b := make([]byte, 40, 40+len(payload))
	b[0], b[6], b[7] = 6<<4, next, 64
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	copy(b[8:], src.AsSlice())
	copy(b[24:], dst.AsSlice())
	return append(b, payload...)
}

const (
	flagSyn = 2
	flagAck = 16
)

// Packets made by hand are asked about as others are, whatever they are wrapped in,
// or refused without a question.
func TestPacketsMadeByHand(t *testing.T) {
	b := newBox(t)
	asked := make(chan Flow, 64)
	n := b.open(Options{Decide: func(p *Packet) {
		asked <- p.Flow
		p.Refuse()
	}})
	connections := b.acceptAll(n)
	to4, to6 := netip.MustParseAddr(outside4), netip.MustParseAddr(outside6)
	syn4, syn6 := segment(flagSyn, Guest4, to4), segment(flagSyn, Guest6, to6)
	options := append([]byte{unix.IPPROTO_TCP, 0, 1, 4, 0, 0, 0, 0}, syn6...) // PadN
	for _, s := range []struct {
		name    string
		packets [][]byte
		to      netip.Addr
		asked   bool
	}{
		{"plain", [][]byte{packet4(syn4, unix.IPPROTO_TCP, 0, Guest4, to4)}, to4, true},
		{"plain, IPv6", [][]byte{packet6(syn6, unix.IPPROTO_TCP, Guest6, to6)}, to6, true},
		{"destination options", [][]byte{packet6(options, unix.IPPROTO_DSTOPTS, Guest6, to6)}, to6, true},
		{"hop by hop", [][]byte{packet6(options, unix.IPPROTO_HOPOPTS, Guest6, to6)}, to6, true},
		{"fragments", [][]byte{
			packet4(syn4[:8], unix.IPPROTO_TCP, 0x2000, Guest4, to4),
			packet4(syn4[8:], unix.IPPROTO_TCP, 1, Guest4, to4),
		}, to4, true},
		{"a lone fragment", [][]byte{packet4(syn4[8:], unix.IPPROTO_TCP, 1, Guest4, to4)}, to4, false},
		{"from the midst", [][]byte{packet4(segment(flagAck, Guest4, to4), unix.IPPROTO_TCP, 0, Guest4, to4)}, to4, false},
		{"an answer", [][]byte{packet4(segment(flagSyn|flagAck, Guest4, to4), unix.IPPROTO_TCP, 0, Guest4, to4)}, to4, false},
		{"SCTP in fragments", [][]byte{packet4(syn4, unix.IPPROTO_SCTP, 0x2000, Guest4, to4)}, to4, false},
		{"IPv6 where IPv4 should be", [][]byte{packet6(syn6, unix.IPPROTO_TCP, Guest6, to6)}, to4, false},
		{"cut off", [][]byte{packet4(syn4[:10], unix.IPPROTO_TCP, 0, Guest4, to4)}, to4, false},
	} {
		for _, p := range s.packets {
			b.raw(p, s.to) //nolint:errcheck // some are not permitted
		}
		if s.asked {
			if f := wait(t, asked); f.Dst != netip.AddrPortFrom(s.to, 443) || f.Src.Port() != 4000 {
				t.Errorf("%s: asked about %+v", s.name, f)
			}
		}
		// What was asked about before this connection was about the packets.
		if _, err := b.dial(net.Dialer{}, "tcp", outside4+":9"); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: then %v", s.name, err)
		}
		if f := wait(t, asked); f.Dst.Port() != 9 {
			t.Errorf("%s: asked about %+v", s.name, f)
		}
	}
	if len(connections) != 0 {
		t.Errorf("%d connections came to the listeners", len(connections))
	}
}

// The first packet of a connection, made by hand, comes beside the kernel's own.
func TestSameAddressesAtOnce(t *testing.T) {
	b := newBox(t)
	packets := make(chan *Packet, 64)
	n := b.open(Options{Decide: func(p *Packet) { packets <- p }})
	connections := b.acceptAll(n)
	fd := b.connecting(outside[0])
	first := wait(t, packets)
	to := netip.MustParseAddr(outside4)
	forged := segment(flagSyn, Guest4, to)
	binary.BigEndian.PutUint16(forged, first.Src.Port())
	if err := b.raw(packet4(forged, unix.IPPROTO_TCP, 0, Guest4, to), to); err != nil {
		t.Fatal(err)
	}
	second := wait(t, packets)
	if first.Flow != second.Flow {
		t.Errorf("%+v and %+v are not the same", first.Flow, second.Flow)
	}
	first.Accept()
	second.Accept()
	if err := connected(t, fd); err != nil {
		t.Error(err)
	}
	if a := wait(t, connections).original; a.String() != outside[0] {
		t.Errorf("the original destination is %v", a)
	}
	if len(connections) != 0 {
		t.Error("another connection came")
	}
}
