package veth

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/netns"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// Link is one of a namespace.
type Link struct {
	pair
	opts  LinkOptions // host.mu guards Limits
	host  *Host
	index int
	name  string

	in, out uint64 // what the kernel had counted when it was asked last; host.mu guards them
	removed bool   // host.mu guards it
}

// SetLimits changes the limits of what passes: BytesPerSecond and Connections.
func (l *Link) SetLimits(limits rules.Limits) error {
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	if l.removed || l.opts.Limits == limits {
		return nil
	}
	before := l.opts.Limits
	l.opts.Limits = limits
	if err := l.host.load(l.setChains); err != nil {
		l.opts.Limits = before
		return fmt.Errorf("veth: change the limits: %w", err)
	}
	return nil
}

// Cut ends the flows that f says: the next packet of one is the first of a new one.
func (l *Link) Cut(f func(netns.Flow) bool) error {
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, flows{l, f}); err != nil {
			return fmt.Errorf("veth: end flows: %w", err)
		}
	}
	return nil
}

// flows are those of a link that a function says.
type flows struct {
	*Link
	matches func(netns.Flow) bool
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (f flows) MatchConntrackFlow(c *netlink.ConntrackFlow) bool {
	t := c.Forward
	src, ok := netip.AddrFromSlice(t.SrcIP)
	if src = src.Unmap(); !ok || src != f.guest4 && src != f.guest6 {
		return false
	}
	// For the address that is reached in the end, as Decide has it.
	dst, ok := netip.AddrFromSlice(c.Reverse.SrcIP)
	if !ok {
		return false
	}
	flow := netns.Flow{Protocol: t.Protocol, Src: netip.AddrPortFrom(src, 0), Dst: netip.AddrPortFrom(dst.Unmap(), 0)}
	if t.Protocol == unix.IPPROTO_UDP {
		flow.Src, flow.Dst = netip.AddrPortFrom(src, t.SrcPort), netip.AddrPortFrom(dst.Unmap(), c.Reverse.SrcPort)
	}
	return f.matches(flow)
}

// Close removes the link.
func (l *Link) Close() error {
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	if l.removed {
		return nil
	}
	if err := errors.Join(l.remove(), l.host.rest()); err != nil {
		return fmt.Errorf("veth: remove the link: %w", err)
	}
	return nil
}

// remove takes the link and then its part of the table away. host.mu is held.
func (l *Link) remove() error {
	h := l.host
	if err := deleteLink(l.name); err != nil {
		return err // with its part of the table left as it is
	}
	l.removed = true
	delete(h.links, l.index)
	if h.former == nil {
		h.former = map[string]int{}
	}
	h.former[l.opts.Name] = l.index
	h.setSources()
	return l.deleteChains()
}
