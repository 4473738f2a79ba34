package netproxy

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

// steered serves connections that a command made to any address, and that were led
// here. They are those of SOCKS5 in every respect, and in decisions; one that is not
// let through is reset, since the command's end is connected already.
type steered struct {
	p     *Proxy
	names *names
	// destination is what a connection was made to.
	destination func(net.Conn) (netip.AddrPort, error)
}

// serve serves the connections of l until ctx or l ends.
func (s *steered) serve(ctx context.Context, l net.Listener) error {
	return each(ctx, l, func(conn net.Conn) { s.connection(ctx, conn) })
}

func (s *steered) connection(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if !s.carry(ctx, conn) {
		reset(conn)
	}
}

// carry returns whether the connection went anywhere.
func (s *steered) carry(ctx context.Context, conn net.Conn) bool {
	to, err := s.destination(conn)
	if err != nil {
		return false
	}
	h, ok := s.names.host(to.Addr())
	if !ok {
		return false
	}
	req := request{protocol: policy.SOCKS5TCP, host: h, port: to.Port(), client: conn.RemoteAddr().String()}
	if s.p.limited {
		s.p.refuse(&req, byMode, policy.MethodNotAllowed)
		return false
	}
	way, d := s.p.decide(ctx, &req)
	if d.Verdict != "allow" {
		return false
	}
	origin, err := s.p.reach(ctx, way, &req)
	if err != nil {
		return false
	}
	if s.p.opens(&req) {
		s.p.open(ctx, &readAhead{Conn: conn, ahead: bufio.NewReader(conn)}, way, &req, origin)
	} else {
		tunnel(ctx, conn, origin)
	}
	return true
}

// reset ends a connection so that its other end gets an error.
func reset(conn net.Conn) {
	if c, ok := plain(conn).(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}

// plain is a connection that a listener counts.
func plain(conn net.Conn) net.Conn {
	if c, ok := conn.(*counted); ok {
		return c.Conn
	}
	return conn
}

// originalDestination is SO_ORIGINAL_DST of linux/netfilter_ipv4.h, and the same for
// IPv6.
const originalDestination = 80

var errOriginal = errors.New("the connection's destination is unknown")

// original is what a connection was made to before the kernel led it elsewhere.
func original(conn net.Conn) (netip.AddrPort, error) {
	c, ok := plain(conn).(*net.TCPConn)
	if !ok {
		return netip.AddrPort{}, errOriginal
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	local, _ := netip.ParseAddrPort(c.LocalAddr().String())
	level := uintptr(unix.SOL_IPV6)
	if local.Addr().Unmap().Is4() {
		level = unix.SOL_IP
	}
	var to unix.RawSockaddrInet6 // the other kind is shorter
	size := uint32(unsafe.Sizeof(to))
	var failed unix.Errno
	if err := raw.Control(func(fd uintptr) {
		_, _, failed = unix.Syscall6(unix.SYS_GETSOCKOPT, fd, level, originalDestination, uintptr(unsafe.Pointer(&to)), uintptr(unsafe.Pointer(&size)), 0)
	}); err != nil {
		return netip.AddrPort{}, err
	}
	if failed != 0 {
		return netip.AddrPort{}, failed
	}
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&to.Port))[:])
	if to.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(&to))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), port), nil
	}
	return netip.AddrPortFrom(netip.AddrFrom16(to.Addr).Unmap(), port), nil
}
