package network

import (
	"net"
	"slices"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// connection is one of a program's, with what was decided about it.
type connection struct {
	key
	upstream *net.TCPConn
	client   *net.TCPConn // nil until it was accepted

	// Way.mu guards these from when the connection is one of Way.open.
	opinion
	said *rules.Said // what the client has said, if that was asked
}

// label is what the connection counts as: the name that was said, if one was, or
// one that the address is an answer to, or the address.
func (c *connection) label(s rules.Said) string {
	switch {
	case s.Name != "":
		return s.Name
	case len(c.flow.Names) > 0:
		return slices.Min(c.flow.Names)
	}
	return c.to.Addr().String()
}

// denies tells whether a table denies what the connection is now.
func (c *connection) denies(t *rules.Table) bool {
	switch d := t.Connect(c.flow); {
	case d.Verdict != rules.AskName:
		return d.Verdict == rules.Deny
	case c.said != nil:
		return t.Named(c.flow, *c.said).Verdict != rules.Allow
	case c.decision.Verdict == rules.AskName:
		return false // it is being asked, and will be decided by the table of then
	default:
		return t.Named(c.flow, rules.Said{App: rules.TCP}).Verdict != rules.Allow
	}
}

// reset ends both sides, so that their ends notice.
func (c *connection) reset() {
	reset(c.client)
	reset(c.upstream)
}
