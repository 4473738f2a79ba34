// Package network is the only way out of an environment: a Way decides what its
// programs may reach, makes those connections from the host, and counts and logs
// what it denied. docs/network.md has the picture.
package network

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/broker"
	"github.com/exec-server/exec-server/internal/network/names"
	"github.com/exec-server/exec-server/internal/network/netns"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/veth"
)

// Options say whose way out it is.
type Options struct {
	Name string // the environment's
	// Netns is the network namespace of the environment. It is the caller's, and
	// may be closed after Open.
	Netns  *os.File
	Policy rules.Policy
	// Dir is where the environment's CA is kept, if its policy has one.
	Dir string
	// Upstream is asked for the names that may resolve.
	Upstream *names.Upstream
	// Used is how many bytes have passed before, for Policy.Bytes.
	Used int64
	// VEth makes the links of policies that want one; nil refuses those.
	VEth *veth.Host
	Log  zerolog.Logger // names the environment
}

// Way is the way out of one environment.
type Way struct {
	opts     Options
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup // what spawn has started
	table    atomic.Pointer[rules.Table]
	budget   *budget
	book     *book
	counters *counters
	denials  *denials
	lookups  atomic.Uint64
	failures atomic.Uint64 // of lookups that are allowed

	// Lines of the log.
	certificates, unresolved *sparse

	authority atomic.Pointer[broker.Authority] // nil if nothing is intercepted

	// A test's own, or the real ones.
	names    pins
	own      func(netip.Addr) bool
	dial     func(context.Context, netip.AddrPort) (*net.TCPConn, error)
	original func(net.Conn) (netip.AddrPort, error)
	setUp    func() (closer, error)
	roots    *x509.CertPool // of the certificates of hosts; nil are the system's

	setting sync.Mutex                // held while the policy changes; guards ns
	ns      closer                    // nil while nothing is set up
	link    atomic.Pointer[veth.Link] // nil unless the policy has one; setting is held while that changes

	asking chan struct{} // has room for the datagrams that wait for names

	mu     sync.Mutex // guards what follows, and of connections what they say
	open   map[*connection]struct{}
	closed bool
}

// pins is what is needed of names.Names.
type pins interface {
	Names(netip.Addr) []string
	Refresh(context.Context, netip.Addr) []string
	Pinned(string, netip.Addr) bool
	Lookup(context.Context, string) (addrs, removed []netip.Addr, err error)
}

type closer interface{ Close() error }

// Open makes the way out. With a policy of mode none nothing is set up in the
// namespace until Set has another. An invalid policy is an error that says which
// rule is wrong.
func Open(o Options) (*Way, error) {
	fd, err := unix.FcntlInt(o.Netns.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("keep the namespace: %w", err)
	}
	o.Netns = os.NewFile(uintptr(fd), "netns")
	w := newWay(o)
	if o.VEth != nil {
		w.own = func(a netip.Addr) bool { return own(a) || o.VEth.Own(a) }
	}
	n := names.New(names.Options{
		Table: w.table.Load, Upstream: o.Upstream, Own: w.own, Report: w.lookup,
	})
	w.names = n
	w.setUp = func() (closer, error) { return w.enter(n) }
	if err := w.Set(o.Policy, false); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// newWay makes one that denies everything.
func newWay(o Options) *Way {
	w := &Way{
		opts: o, budget: newBudget(rules.Limits{}, o.Used), counters: newCounters(), denials: newDenials(o.Log),
		own: own, dial: dialHost, original: netns.Original, open: map[*connection]struct{}{},
		asking: make(chan struct{}, maxAsking), certificates: newWarnings(), unresolved: newWarnings(),
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.book = newBook(w.drop)
	return w
}

// enter sets the namespace up.
func (w *Way) enter(n *names.Names) (closer, error) {
	ns, err := netns.Open(w.opts.Netns, netns.Options{
		Decide: func(p *netns.Packet) { w.first(key{p.Src, p.Dst}, p) },
		Denied: w.other,
	})
	if err != nil {
		return nil, err
	}
	for _, l := range ns.TCP {
		w.spawn(func() { w.accept(l) })
	}
	for _, d := range ns.DNS {
		w.spawn(func() {
			if err := n.Serve(w.ctx, d.UDP, d.TCP); err != nil && w.ctx.Err() == nil {
				w.opts.Log.Error().Err(err).Msg("network: names")
			}
		})
	}
	return ns, nil
}

// Policy returns the policy that is in force.
func (w *Way) Policy() rules.Policy { return w.table.Load().Policy() }

// Set puts another policy in force: at once for new connections, for requests on
// open HTTP connections and for lookups. With closeOpen, open connections that it
// denies are reset. If it fails the policy before stays in force.
func (w *Way) Set(p rules.Policy, closeOpen bool) error {
	t, err := rules.Compile(p)
	if err != nil {
		return fmt.Errorf("network policy: %w", err)
	}
	w.setting.Lock()
	defer w.setting.Unlock()
	if w.isClosed() {
		return net.ErrClosed
	}
	if p.Intercept && w.authority.Load() == nil {
		a, err := broker.OpenAuthority(w.opts.Dir, w.opts.Name)
		if err != nil {
			return fmt.Errorf("network policy: %w", err)
		}
		w.authority.Store(a)
	}
	before := w.table.Swap(t)
	if w.ns == nil && p.Mode != rules.None {
		if w.ns, err = w.setUp(); err != nil {
			w.table.Store(before)
			return fmt.Errorf("set the network up: %w", err)
		}
	}
	if err := w.setLink(p); err != nil {
		w.table.Store(before)
		return fmt.Errorf("set the network up: %w", err)
	}
	w.budget.set(p.Limits)
	if closeOpen {
		w.closeDenied(t)
		return w.cut(func(f netns.Flow) bool { return t.Connect(w.datagramFlow(f)).Verdict == rules.Deny })
	}
	return nil
}

// Close ends all connections, and what serves them. Of what was set up in the
// namespace nothing lets anything pass from then on.
func (w *Way) Close() error {
	w.setting.Lock()
	defer w.setting.Unlock()
	if w.isClosed() {
		return nil
	}
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.cancel()
	var err error
	if w.ns != nil {
		err = w.ns.Close()
	}
	if l := w.link.Load(); l != nil {
		err = errors.Join(err, l.Close())
	}
	w.book.close()
	for _, c := range w.all() {
		c.reset()
	}
	w.work.Wait()
	w.denials.close()
	return errors.Join(err, w.opts.Netns.Close())
}

// Stats returns what passed and what was denied since Open.
func (w *Way) Stats() Stats {
	s := w.counters.read()
	s.Denials = w.denials.recent()
	s.Lookups, s.FailedLookups = w.lookups.Load(), w.failures.Load()
	s.Used = w.budget.used.Load()
	s.Open = w.budget.connections()
	return s
}
