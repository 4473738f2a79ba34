package netproxy

import (
	"context"
	"net"
	"net/netip"
	"strconv"
)

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// serveBridge leads connections to a port of this process's loopback, until ctx
// or l ends.
func (p *Proxy) serveBridge(ctx context.Context, l net.Listener, port uint16) error {
	return each(ctx, l, func(conn net.Conn) {
		there, err := p.dialer(ctx, "tcp", net.JoinHostPort(loopback.String(), strconv.Itoa(int(port))))
		if err != nil {
			_ = conn.Close()
			return
		}
		tunnel(ctx, conn, there)
	})
}
