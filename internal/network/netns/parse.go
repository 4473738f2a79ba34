package netns

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// extensions bounds the extension headers of a packet that is looked at. Nobody but
// a forger has more than a few.
const extensions = 8

// parse reads the start of an IP packet of the family that the kernel has it for. The
// packet may be made by hand in the sandbox, and the version in it be another one. ok
// is false for what is cut off, a fragment or no IP. syn tells if it begins a TCP
// connection.
func parse(proto byte, b []byte) (f Flow, syn, ok bool) {
	var src, dst netip.Addr
	switch proto {
	case unix.NFPROTO_IPV4:
		src, dst, f.Protocol, b = parseIPv4(b)
	case unix.NFPROTO_IPV6:
		src, dst, f.Protocol, b = parseIPv6(b)
	}
	if !src.IsValid() {
		return Flow{}, false, false
	}
	var srcPort, dstPort uint16
	switch f.Protocol {
	case unix.IPPROTO_TCP:
		if len(b) < 20 {
			return Flow{}, false, false
		}
		const fin, synBit, rst, ack = 1, 2, 4, 16
		syn = b[13]&(fin|synBit|rst|ack) == synBit
		fallthrough
	case unix.IPPROTO_UDP:
		if len(b) < 8 {
			return Flow{}, false, false
		}
		srcPort, dstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	}
	f.Src, f.Dst = netip.AddrPortFrom(src, srcPort), netip.AddrPortFrom(dst, dstPort)
	return f, syn, true
}

// parseIPv4 returns invalid addresses for what is no whole IPv4 packet.
func parseIPv4(b []byte) (src, dst netip.Addr, proto uint8, rest []byte) {
	if len(b) < 20 || b[0]>>4 != 4 {
		return
	}
	header := int(b[0]&15) * 4
	const more, offset = 0x2000, 0x1fff
	if header < 20 || len(b) < header || binary.BigEndian.Uint16(b[6:])&(more|offset) != 0 {
		return
	}
	return netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20])), b[9], b[header:]
}

// parseIPv6 is parseIPv4 for IPv6. Extension headers are passed over as the kernel
// does it.
func parseIPv6(b []byte) (src, dst netip.Addr, proto uint8, rest []byte) {
	if len(b) < 40 || b[0]>>4 != 6 {
		return
	}
	next, rest := b[6], b[40:]
	for range extensions {
		length := 0
		switch next {
		case unix.IPPROTO_HOPOPTS, unix.IPPROTO_ROUTING, unix.IPPROTO_DSTOPTS:
			if len(rest) >= 2 {
				length = (int(rest[1]) + 1) * 8
			}
		case unix.IPPROTO_AH:
			if len(rest) >= 2 {
				length = (int(rest[1]) + 2) * 4
			}
		case unix.IPPROTO_FRAGMENT:
			return // the kernel has put fragments together before
		default:
			// An address of IPv4 in here stays one of IPv6: that is what is routed.
			return netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40])), next, rest
		}
		if length == 0 || len(rest) < length {
			return
		}
		next, rest = rest[0], rest[length:]
	}
	return
}
