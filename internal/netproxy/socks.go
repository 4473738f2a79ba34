package netproxy

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
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
	return each(ctx, l, func(conn net.Conn) { p.socks(ctx, conn, datagrams) })
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
	if p.opens(&req) {
		p.open(ctx, &readAhead{Conn: conn, ahead: bufio.NewReader(conn)}, to, &req, origin)
		return
	}
	tunnel(ctx, conn, origin)
}
