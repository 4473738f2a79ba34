package netproxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
)

// What a command may have of datagrams.
const (
	maxFlows        = 64      // sockets that it sends from
	maxDestinations = 256     // of each
	maxDatagram     = 1 << 16 // bytes, with the header of SOCKS
)

// relay moves the datagrams of all SOCKS5 associations of a command through one
// socket that it sends to. A destination is decided about once for each socket
// of the command.
type relay struct {
	p    *Proxy
	conn *net.UDPConn // the command's side

	mu           sync.Mutex // guards all below; not held over a send
	associations map[*association]struct{}
	flows        map[netip.AddrPort]*flow
}

// association is a command's leave to send datagrams, which lasts as long as the
// connection that asked for it.
type association struct {
	from netip.Addr
	port uint16 // 0: any
}

func (a *association) covers(from netip.AddrPort) bool {
	return a.from == from.Addr() && (a.port == 0 || a.port == from.Port())
}

// flow is what comes from one socket of the command.
type flow struct {
	conn         *net.UDPConn // the other side
	destinations map[string]*destination
	senders      map[netip.AddrPort]struct{} // who may answer
}

// destination is one that was decided about, or is being decided about.
type destination struct {
	at netip.AddrPort // not valid: nothing is sent there
}

func newRelay(p *Proxy, conn *net.UDPConn) *relay {
	return &relay{p: p, conn: conn, associations: make(map[*association]struct{}), flows: make(map[netip.AddrPort]*flow)}
}

// associate answers a request for datagrams and holds the association until the
// connection ends.
func (r *relay) associate(conn net.Conn, host string, port uint16) {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return
	}
	// The port that the client names is the only one, if it names one.
	a := &association{from: peer.Addr().Unmap(), port: port}
	r.mu.Lock()
	r.associations[a] = struct{}{}
	r.mu.Unlock()
	defer r.dissolve(a)
	at, _ := netip.ParseAddrPort(r.conn.LocalAddr().String())
	if _, err := conn.Write(socksReply(socksOK, at)); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, conn)
}

// dissolve ends an association, and the flows that no other one covers.
func (r *relay) dissolve(a *association) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.associations, a)
	for from, f := range r.flows {
		if !r.coveredLocked(from) {
			_ = f.conn.Close()
			delete(r.flows, from)
		}
	}
}

func (r *relay) coveredLocked(from netip.AddrPort) bool {
	for a := range r.associations {
		if a.covers(from) {
			return true
		}
	}
	return false
}

// serve relays until ctx or the socket ends.
func (r *relay) serve(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = r.conn.Close() })()
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := r.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		host, port, data, ok := parseDatagram(buf[:n])
		if ok {
			r.send(ctx, from, host, port, data)
		}
	}
}

// parseDatagram takes SOCKS's header off. Fragments are not put together, as the
// standard allows.
func parseDatagram(b []byte) (host string, port uint16, data []byte, ok bool) {
	if len(b) < 4 || b[0] != 0 || b[1] != 0 || b[2] != 0 {
		return "", 0, nil, false
	}
	rest := bytes.NewReader(b[3:])
	host, port, err := socksAddress(rest)
	return host, port, b[len(b)-rest.Len():], err == nil
}
