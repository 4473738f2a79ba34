package veth

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/netns"
)

// Packet is the first one of a flow over a link, and waits for a verdict. The first
// verdict counts. A verdict never blocks.
type Packet struct {
	*netns.Packet
	link *Link
}

// Refuse drops the packet and tells the guest that its destination is not reached
// (ECONNREFUSED for UDP). The kernel itself would tell no more than once a second.
func (p *Packet) Refuse() {
	p.Drop()
	if a := p.Src.Addr(); a.Is4() {
		send(p.link.host.errors4, error4(p.link.host4, a, p.Protocol, p.Start), &unix.SockaddrInet4{Addr: a.As4()})
	} else {
		send(p.link.host.errors6, error6(p.link.host6, a, p.Protocol, p.Start), &unix.SockaddrInet6{Addr: a.As16()})
	}
}

// openErrors opens a socket that sends whole packets and gets none.
func openErrors(family int) (*os.File, error) {
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
	if err != nil {
		return nil, fmt.Errorf("open a socket for errors: %w", err)
	}
	return os.NewFile(uintptr(fd), "errors"), nil
}

// send is done at once, or not at all: the guest is not owed an error.
func send(f *os.File, packet []byte, to unix.Sockaddr) {
	if f == nil {
		return
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	// A socket that is being closed stays open while this lasts.
	_ = raw.Control(func(fd uintptr) { _ = unix.Sendto(int(fd), packet, 0, to) })
}

// error4 is what ICMP has to say of a packet (RFC 792): that its port, or that all
// communication is not for it.
func error4(src, dst netip.Addr, protocol uint8, packet []byte) []byte {
	const unreachable, port, prohibited = 3, 3, 13
	code := byte(prohibited)
	if protocol == unix.IPPROTO_UDP {
		code = port
	}
	message := append([]byte{unreachable, code, 0, 0, 0, 0, 0, 0}, packet...)
	binary.BigEndian.PutUint16(message[2:], checksum(message))
	// The kernel fills the length, the identification and the checksum.
	header := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, unix.IPPROTO_ICMP, 0, 0}
	header = append(append(header, src.AsSlice()...), dst.AsSlice()...)
	return append(header, message...)
}

// error6 is error4 for IPv6 (RFC 4443).
func error6(src, dst netip.Addr, protocol uint8, packet []byte) []byte {
	const unreachable, port, prohibited = 1, 4, 1
	code := byte(prohibited)
	if protocol == unix.IPPROTO_UDP {
		code = port
	}
	message := append([]byte{unreachable, code, 0, 0, 0, 0, 0, 0}, packet...)
	ends := append(src.AsSlice(), dst.AsSlice()...)
	pseudo := binary.BigEndian.AppendUint32(ends, uint32(len(message)))
	pseudo = append(append(pseudo, 0, 0, 0, unix.IPPROTO_ICMPV6), message...)
	binary.BigEndian.PutUint16(message[2:], checksum(pseudo))
	header := binary.BigEndian.AppendUint16([]byte{0x60, 0, 0, 0}, uint16(len(message)))
	header = append(append(header, unix.IPPROTO_ICMPV6, 64), src.AsSlice()...)
	return append(append(header, dst.AsSlice()...), message...)
}

// checksum is that of RFC 1071.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
