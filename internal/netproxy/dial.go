package netproxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
)

type routeKey struct{}

func routeOf(ctx context.Context) route {
	to, _ := ctx.Value(routeKey{}).(route)
	return to
}

// dialFor connects for the HTTP client: to the addresses of the request's own
// route, whatever name the client asks for, or to another proxy.
func (p *Proxy) dialFor(ctx context.Context, network, address string) (net.Conn, error) {
	to := routeOf(ctx)
	if to.upstream != nil {
		return p.dialer(ctx, network, address)
	}
	return p.dial(ctx, to)
}

var errUnknown = errors.New("no address is known")

// dial connects to the first address of a route that answers.
func (p *Proxy) dial(ctx context.Context, to route) (net.Conn, error) {
	err := errUnknown
	for _, addr := range to.addrs[:min(len(to.addrs), maxAddresses)] {
		var conn net.Conn
		if conn, err = p.dialer(ctx, "tcp", netip.AddrPortFrom(addr, to.port).String()); err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}
