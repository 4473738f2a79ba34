package network

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/exec-server/exec-server/internal/network/netns"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// acceptPause is how long it takes until there may be a descriptor again.
const acceptPause = 50 * time.Millisecond

// accept serves a listener until that is closed.
func (w *Way) accept(l net.Listener) {
	for failed := false; ; {
		c, err := l.Accept()
		switch {
		case err == nil:
			failed = false
		case w.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		default:
			if !failed {
				w.opts.Log.Error().Err(err).Msg("network: accept")
			}
			failed = true
			select {
			case <-time.After(acceptPause):
			case <-w.ctx.Done():
			}
			continue
		}
		client := c.(*net.TCPConn)
		if !w.spawn(func() { w.serve(client) }) {
			reset(client)
		}
	}
}

// serve carries a connection of a program until it ends.
func (w *Way) serve(client *net.TCPConn) {
	c, err := w.meet(client)
	if err != nil {
		reset(client)
		return
	}
	defer w.drop(c)
	c.client = client
	if !w.add(c) {
		c.reset()
		return
	}
	defer w.remove(c)
	// The policy may have changed while it waited. From here on Set sees it.
	if c.table != w.table.Load() {
		o := w.judge(w.ctx, c.key)
		w.mu.Lock()
		c.opinion = o
		w.mu.Unlock()
	}
	switch c.decision.Verdict {
	case rules.Allow:
		w.pass(c, rules.Said{})
	case rules.AskName:
		w.passNamed(c)
	default:
		w.denied(c, rules.Said{}, c.decision)
		c.reset()
	}
}

// meet finds the upstream side that waits for a client. If there is none the client
// came another way, and it is decided and made now.
func (w *Way) meet(client *net.TCPConn) (*connection, error) {
	from := client.RemoteAddr().(*net.TCPAddr).AddrPort()
	to, err := w.original(client)
	if err != nil {
		return nil, err
	}
	k := key{unmap(from), unmap(to)}
	if inside(k.to.Addr()) {
		return nil, errRefuse
	}
	if c := w.book.take(k); c != nil {
		return c, nil
	}
	return w.reach(w.ctx, k)
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// inside tells whether an address is one of the namespace's own.
func inside(a netip.Addr) bool {
	return a == netns.Gateway4 || a == netns.Gateway6 || a == netns.Guest4 || a == netns.Guest6
}

// pass moves the bytes of a connection that is allowed.
func (w *Way) pass(c *connection, s rules.Said) {
	m := meter{budget: w.budget, count: w.counters.allow(c.label(s))}
	if err := splice(w.ctx, c.client, c.upstream, m); errors.Is(err, errVolume) {
		w.denied(c, s, rules.Decision{Reason: rules.TooMuch, Rule: -1})
	}
}

// passNamed decides by what the client says, and moves its bytes then, which none
// have been until then.
func (w *Way) passNamed(c *connection) {
	h, err := ask(c.client, c.upstream, helloTime)
	if err != nil {
		c.reset()
		return
	}
	s := saying(h)
	switch d := w.named(c, s); {
	case s.App == rules.HTTP:
		w.relay(c, s, d) // each request is decided about, and one that is denied has an answer
	case d.Verdict != rules.Allow:
		w.denied(c, s, d)
		c.reset()
	case d.Credential != nil:
		w.relay(c, s, d)
	default:
		w.pass(c, s)
	}
}

// named decides by what the client has said, and notes that with the connection.
func (w *Way) named(c *connection, s rules.Said) rules.Decision {
	a := c.to.Addr()
	for refreshed := false; ; {
		s.Pinned = w.names.Pinned(s.Name, a)
		said := s
		w.mu.Lock()
		c.said = &said
		w.mu.Unlock()
		// From here on Set sees it, whose policy is this one or the next.
		t := w.table.Load()
		d := t.Named(c.flow, s)
		if d.Reason != rules.WrongName || refreshed {
			return d
		}
		// The name's answer may have been good for less than the program keeps it.
		w.names.Refresh(w.ctx, a)
		refreshed = true
	}
}
