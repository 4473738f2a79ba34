package netns

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// originalDst is SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST, which are the same number.
const originalDst = 80

// Original is the address that the program connected to, of a connection that one of
// Namespace.TCP accepted. It is the gateway's if the program meant the listener.
func Original(c net.Conn) (netip.AddrPort, error) {
	a, err := original(c)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("original destination: %w", err)
	}
	return a, nil
}

func original(c net.Conn) (netip.AddrPort, error) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return netip.AddrPort{}, unix.ENOTSOCK
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	local, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, unix.EAFNOSUPPORT
	}
	var a netip.AddrPort
	var failed error
	err = raw.Control(func(fd uintptr) {
		if local.IP.To4() != nil {
			a, failed = original4(int(fd))
		} else {
			a, failed = original6(int(fd))
		}
	})
	if err == nil {
		err = failed
	}
	return a, err
}

func original4(fd int) (netip.AddrPort, error) {
	// The package has no call for a sockaddr_in; this structure is as large as one.
	m, err := unix.GetsockoptIPv6Mreq(fd, unix.SOL_IP, originalDst)
	if err != nil {
		return netip.AddrPort{}, err
	}
	b := m.Multiaddr // family, port, address
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), uint16(b[2])<<8|uint16(b[3])), nil
}

func original6(fd int) (netip.AddrPort, error) {
	m, err := unix.GetsockoptIPv6MTUInfo(fd, unix.SOL_IPV6, originalDst)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port := (*[2]byte)(unsafe.Pointer(&m.Addr.Port)) // in network order
	return netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr), uint16(port[0])<<8|uint16(port[1])), nil
}
