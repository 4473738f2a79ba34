package netproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

// Numbers of SOCKS5, RFC 1928.
const (
	socksVersion   = 5
	socksNoAuth    = 0
	socksNoMethod  = 0xff
	socksConnect   = 1
	socksAssociate = 3
	socksIPv4      = 1
	socksName      = 3
	socksIPv6      = 4

	socksOK            = 0
	socksFailure       = 1
	socksForbidden     = 2
	socksNoNetwork     = 3
	socksNoHost        = 4
	socksRefused       = 5
	socksNoCommand     = 7
	socksHandshakeTime = 30 * time.Second
)

// serveSOCKS serves SOCKS5 on l until ctx or l ends; datagrams is nil if they
// are not relayed.
func (p *Proxy) serveSOCKS(ctx context.Context, l net.Listener, datagrams *relay) error {
	l = bound(l, maxConnections)
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go p.socks(ctx, conn, datagrams)
	}
}

var errSOCKS = errors.New("not SOCKS5")

func (p *Proxy) socks(ctx context.Context, conn net.Conn, datagrams *relay) {
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(socksHandshakeTime))
	command, host, port, err := handshake(conn)
	if err != nil {
		return
	}
	switch {
	case command == socksConnect:
	case command == socksAssociate && datagrams != nil:
		_ = conn.SetDeadline(time.Time{})
		datagrams.associate(conn, host, port)
		return
	default:
		_, _ = conn.Write(socksReply(socksNoCommand, netip.AddrPort{}))
		return
	}
	h, ok := policy.ParseHost(host)
	if !ok {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	req := request{protocol: policy.SOCKS5TCP, host: h, port: port, client: conn.RemoteAddr().String()}
	if p.limited {
		p.refuse(&req, byMode, policy.MethodNotAllowed)
		_, _ = conn.Write(socksReply(socksForbidden, netip.AddrPort{}))
		return
	}
	to, d := p.decide(ctx, &req)
	if d.Verdict != "allow" {
		_, _ = conn.Write(socksReply(socksForbidden, netip.AddrPort{}))
		return
	}
	origin, err := p.reach(ctx, to, &req)
	if err != nil {
		_, _ = conn.Write(socksReply(socksError(err), netip.AddrPort{}))
		return
	}
	local, _ := netip.ParseAddrPort(origin.LocalAddr().String())
	if _, err := conn.Write(socksReply(socksOK, local)); err != nil {
		_ = origin.Close()
		return
	}
	tunnel(ctx, conn, origin)
}

// handshake reads a client's greeting and its request. A client that does not
// offer to go without authentication is told so; nobody else who errs is.
func handshake(conn io.ReadWriter) (command byte, host string, port uint16, err error) {
	var b [257]byte
	if _, err = io.ReadFull(conn, b[:2]); err != nil || b[0] != socksVersion {
		return 0, "", 0, errSOCKS
	}
	methods := b[:b[1]]
	if _, err = io.ReadFull(conn, methods); err != nil {
		return 0, "", 0, err
	}
	chosen := byte(socksNoMethod)
	for _, m := range methods {
		if m == socksNoAuth {
			chosen = socksNoAuth
		}
	}
	if _, err = conn.Write([]byte{socksVersion, chosen}); err != nil || chosen == socksNoMethod {
		return 0, "", 0, errSOCKS
	}
	if _, err = io.ReadFull(conn, b[:3]); err != nil || b[0] != socksVersion {
		return 0, "", 0, errSOCKS
	}
	command = b[1]
	host, port, err = socksAddress(conn)
	return command, host, port, err
}

// socksAddress reads an address and a port.
func socksAddress(r io.Reader) (host string, port uint16, err error) {
	var b [255]byte
	if _, err = io.ReadFull(r, b[:1]); err != nil {
		return "", 0, err
	}
	kind, size := b[0], 4
	switch kind {
	case socksIPv4:
	case socksIPv6:
		size = 16
	case socksName:
		if _, err = io.ReadFull(r, b[:1]); err != nil {
			return "", 0, err
		}
		size = int(b[0])
	default:
		return "", 0, errSOCKS
	}
	if _, err = io.ReadFull(r, b[:size]); err != nil {
		return "", 0, err
	}
	if kind == socksName {
		host = string(b[:size])
	} else {
		addr, _ := netip.AddrFromSlice(b[:size])
		host = addr.String()
	}
	if _, err = io.ReadFull(r, b[:2]); err != nil {
		return "", 0, err
	}
	return host, uint16(b[0])<<8 | uint16(b[1]), nil
}

// socksReply is an answer with an address, 0.0.0.0:0 if it is not valid.
func socksReply(code byte, at netip.AddrPort) []byte {
	return appendSocksAddress([]byte{socksVersion, code, 0}, at)
}

func appendSocksAddress(b []byte, at netip.AddrPort) []byte {
	addr := at.Addr().Unmap()
	if !addr.IsValid() {
		addr = netip.IPv4Unspecified()
	}
	kind := byte(socksIPv4)
	if addr.Is6() {
		kind = socksIPv6
	}
	b = append(append(b, kind), addr.AsSlice()...)
	return append(b, byte(at.Port()>>8), byte(at.Port()))
}

func socksError(err error) byte {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksRefused
	case errors.Is(err, syscall.ENETUNREACH):
		return socksNoNetwork
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, errUnknown):
		return socksNoHost
	}
	return socksFailure
}
