package veth

import (
	"crypto/sha256"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/exec-server/exec-server/internal/network/netns"
)

// index is a free place for a link: the one that the environment had, if it can. Else
// the search begins where no other daemon's does for an environment of the same name:
// what two choose at the same moment, neither sees. mu is held.
func (h *Host) index(name string) (int, error) {
	first, ok := h.former[name]
	if !ok {
		sum := sha256.Sum256([]byte(h.prefix + name))
		first = int(sum[0])<<8 | int(sum[1])
	}
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return 0, fmt.Errorf("list addresses: %w", err)
	}
	taken := map[netip.Addr]bool{} // by another daemon's
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok {
			taken[ip] = true
		}
	}
	n := h.pool.size()
	for k := range n {
		i := 1 + (first-1+n+k)%n
		if h.links[i] == nil && !taken[h.pool.pair(i).host4] {
			return i, nil
		}
	}
	return 0, fmt.Errorf("all of the %d pairs of addresses are taken", n)
}

// setSources has packets find the links. mu is held.
func (h *Host) setSources() {
	all := map[netip.Addr]*Link{}
	for _, l := range h.links {
		all[l.guest4], all[l.guest6] = l, l
	}
	h.sources.Store(&all)
}

func (h *Host) decide(p *netns.Packet) {
	l := (*h.sources.Load())[p.Src.Addr()]
	if l == nil {
		p.Drop()
		return
	}
	l.opts.Decide(&Packet{p, l})
}
