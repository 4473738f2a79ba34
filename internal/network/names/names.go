// Package names is the DNS server of an environment. It decides by the policy which
// names resolve, asks an upstream server for those and for no others, takes special
// addresses out of the answers, and remembers which name each address was an answer
// to: a connection is allowed by what the policy says of the names of its address.
package names

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/exec-server/exec-server/internal/address"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// Options are what the names of an environment need. All of them are set.
type Options struct {
	// Table is the policy as it is now. It is asked anew for every query.
	Table func() *rules.Table
	// Upstream is asked for what may resolve.
	Upstream *Upstream
	// Own says whether an address is one of the host's.
	Own func(netip.Addr) bool
	// Report is told what was decided, several times at once. It must not block.
	Report func(Event)
}

// Kind is what has happened.
type Kind int

// The kinds of events.
const (
	Allowed Kind = iota // a query was answered from upstream, or by a pin
	Denied              // a query was answered here, and nothing was asked
	Removed             // an address was taken out of an answer, which may be all of them
	Failed              // upstream did not answer, or too many queries wait
)

// BadName is the reason for names that no host can have.
const BadName rules.Reason = "bad-name"

// Event is what became of one query, or of one address in its answer.
type Event struct {
	Kind Kind
	// Name is as rules have it. What no host can be called has escapes for what is not
	// printable, and is at most four times as long as a name.
	Name string
	// Type is the type of the question, as "AAAA".
	Type string
	// Addr is what was removed.
	Addr netip.Addr
	// Reason and Rule are the decision's; they are not set if Kind is Failed.
	Reason rules.Reason
	Rule   int
	// Err is why it failed.
	Err error
}

// Names answers one environment's queries, and holds its pins.
type Names struct {
	o       Options
	pins    pins
	workers chan struct{} // one is in it for each datagram that is worked on
	asking  chan struct{} // one is in it for each question that is asked upstream
}

// Bounds of one environment.
const (
	maxWorkers = 256 // datagrams that are worked on; more are answered SERVFAIL
	maxAsking  = 64  // questions upstream; others wait for their turn
	maxConns   = 64  // connections; more are closed
	// A query that has no answer by then is given up. Resolvers wait for 5 s, and ask
	// a second time.
	queryTimeout = 10 * time.Second
)

// New returns the names of an environment, none of which is pinned.
func New(o Options) *Names {
	return &Names{
		o:       o,
		workers: make(chan struct{}, maxWorkers),
		asking:  make(chan struct{}, maxAsking),
	}
}

// Names returns the names that have the address for an answer now, in no order.
func (n *Names) Names(a netip.Addr) []string {
	return n.pins.names(a.Unmap(), time.Now(), true)
}

// Pinned says whether the address is an answer to the name now.
func (n *Names) Pinned(name string, a netip.Addr) bool {
	name, ok := address.Name(name)
	return ok && n.pins.pinned(name, a.Unmap(), time.Now())
}

// Refresh is for programs that keep addresses for longer than they may: it looks the
// names up again that had the address for an answer once, and returns what Names
// does then. It asks nothing for names whose newer answer is still valid.
func (n *Names) Refresh(ctx context.Context, a netip.Addr) []string {
	a = a.Unmap()
	var wg sync.WaitGroup
	for _, name := range n.pins.names(a, time.Now(), false) {
		wg.Go(func() { _, _ = n.lookup(ctx, name, a.Is6()) })
	}
	wg.Wait()
	return n.Names(a)
}

// Lookup returns the addresses of a name, as a program in the environment would get
// them, and pins them: IPv4 first, and none if it has none; and those that the policy
// takes out. Nothing is reported. The error is a *DeniedError if the policy denies the
// name.
func (n *Names) Lookup(ctx context.Context, name string) (addrs, removed []netip.Addr, err error) {
	name, ok := address.Name(name)
	if !ok {
		return nil, nil, &DeniedError{Decision: rules.Decision{Reason: BadName, Rule: -1}}
	}
	var families [2]found
	var errs [2]error
	var wg sync.WaitGroup
	for i := range families {
		wg.Go(func() { families[i], errs[i] = n.find(ctx, name, i == 1, func(Event) {}) })
	}
	wg.Wait()
	addrs = slices.Concat(families[0].addrs, families[1].addrs)
	removed = slices.Concat(families[0].removed, families[1].removed)
	if len(addrs)+len(removed) == 0 {
		return nil, nil, cmp.Or(errs[0], errs[1])
	}
	return addrs, removed, nil
}
