package netproxy

import (
	"bytes"
	"context"
	"net"
	"net/netip"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

// send passes a datagram on, if its destination was allowed before; the first to
// a destination waits for the decision, and those behind it until then are lost.
func (r *relay) send(ctx context.Context, from netip.AddrPort, host string, port uint16, data []byte) {
	h, ok := policy.ParseHost(host)
	if !ok {
		return
	}
	key := net.JoinHostPort(h.String(), "") + string([]byte{byte(port >> 8), byte(port)})
	r.mu.Lock()
	f := r.flowLocked(from)
	if f == nil {
		r.mu.Unlock()
		return
	}
	d := f.destinations[key]
	if d != nil {
		at := d.at
		r.mu.Unlock()
		if at.IsValid() {
			_, _ = f.conn.WriteToUDPAddrPort(data, at)
		}
		return
	}
	if len(f.destinations) >= maxDestinations {
		r.mu.Unlock()
		return
	}
	d = &destination{}
	f.destinations[key] = d
	r.mu.Unlock()
	first := bytes.Clone(data)
	go func() {
		at := r.decide(ctx, from, h, port)
		if !at.IsValid() {
			return
		}
		r.mu.Lock()
		d.at = at
		f.senders[at] = struct{}{}
		r.mu.Unlock()
		_, _ = f.conn.WriteToUDPAddrPort(first, at)
	}()
}

func (r *relay) decide(ctx context.Context, from netip.AddrPort, h policy.Host, port uint16) (at netip.AddrPort) {
	req := request{protocol: policy.SOCKS5UDP, host: h, port: port, client: from.String()}
	if r.p.limited {
		r.p.refuse(&req, byMode, policy.MethodNotAllowed)
		return at
	}
	to, d := r.p.decide(ctx, &req)
	if d.Verdict != "allow" || len(to.addrs) == 0 {
		return at
	}
	return netip.AddrPortFrom(to.addrs[0], port)
}

// flowLocked finds or opens the flow of a socket; nil if it may have none.
func (r *relay) flowLocked(from netip.AddrPort) *flow {
	if f := r.flows[from]; f != nil {
		return f
	}
	if !r.coveredLocked(from) || len(r.flows) >= maxFlows {
		return nil
	}
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil
	}
	f := &flow{conn: conn, destinations: make(map[string]*destination), senders: make(map[netip.AddrPort]struct{})}
	r.flows[from] = f
	go r.answers(f, from)
	return f
}

// answers passes on what comes back from where something was sent.
func (r *relay) answers(f *flow, to netip.AddrPort) {
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := f.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		r.mu.Lock()
		_, known := f.senders[from]
		r.mu.Unlock()
		if known {
			_, _ = r.conn.WriteToUDPAddrPort(append(appendSocksAddress([]byte{0, 0, 0}, from), buf[:n]...), to)
		}
	}
}
