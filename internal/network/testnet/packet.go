package testnet

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Packet is one that has left the host. The kernel's own talk about neighbours and
// multicast groups is none.
type Packet struct {
	Protocol string // "tcp", "udp", "icmp" (of both versions), or a number
	From, To netip.AddrPort
	SYN      bool
}

// parse reads the headers of a packet; rest begins with that of its transport.
func parse(data []byte) (p Packet, rest []byte, ok bool) {
	var number byte
	var from, to netip.Addr
	switch {
	case len(data) >= 20 && data[0]>>4 == 4:
		number, rest = data[9], data[min(len(data), int(data[0]&15)*4):]
		from, to = netip.AddrFrom4([4]byte(data[12:16])), netip.AddrFrom4([4]byte(data[16:20]))
	case len(data) >= 40 && data[0]>>4 == 6:
		number, rest = data[6], data[40:]
		from, to = netip.AddrFrom16([16]byte(data[8:24])), netip.AddrFrom16([16]byte(data[24:40]))
		// Hop-by-hop options come before the reports about groups alone.
		if number == 0 || number == unix.IPPROTO_ICMPV6 && len(rest) > 0 && rest[0] >= 130 {
			return p, nil, false
		}
	default:
		return p, nil, false
	}
	var source, port uint16
	if (number == unix.IPPROTO_TCP || number == unix.IPPROTO_UDP) && len(rest) >= 4 {
		source, port = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	}
	p = Packet{From: netip.AddrPortFrom(from, source), To: netip.AddrPortFrom(to, port)}
	switch number {
	case unix.IPPROTO_TCP:
		p.Protocol, p.SYN = "tcp", len(rest) >= 14 && rest[13]&0x12 == 2
	case unix.IPPROTO_UDP:
		p.Protocol = "udp"
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		p.Protocol = "icmp"
	default:
		p.Protocol = strconv.Itoa(int(number))
	}
	return p, rest, true
}

// String is a packet in a line.
func (p Packet) String() string {
	return strings.Join([]string{p.Protocol, p.From.String(), ">", p.To.String()}, " ")
}
