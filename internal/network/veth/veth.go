// Package veth gives network namespaces a pair of interfaces for what is neither TCP
// nor DNS. What may pass is decided on the host's side, where nothing in the
// namespace gets at it: by a table of nftables of the host's own namespace, which
// asks this process about each flow.
//
// It fails closed. The table passes nothing unless this process has said within the
// last seconds that it is alive, and new flows only when it was asked about them.
package veth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/network/netns"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// The prefixes that addresses come from if Options has none.
var (
	DefaultV4 = netip.MustParsePrefix("10.213.0.0/16")
	DefaultV6 = netip.MustParsePrefix("fd65:7865:64::/64")
)

// Options say whose links they are.
type Options struct {
	// Instance tells the daemons of a machine apart.
	Instance string
	// V4 and V6 are where the links' addresses come from, two each; the defaults if
	// they are not valid. Nothing else of the host may use them.
	V4, V6 netip.Prefix
	Log    zerolog.Logger
}

// Host is the host's side of all links. Until the first is made, it changes nothing
// on the host.
type Host struct {
	opts   Options
	prefix string // of the names of interfaces
	table  string
	pool   pool
	// From the first link on. Of IPv6 there may be none.
	errors4, errors6 *os.File
	// sources has the links by their guests' addresses. The map is never changed.
	sources atomic.Pointer[map[netip.Addr]*Link]

	mu      sync.Mutex // held while the kernel is told something; guards what follows
	former  map[string]int
	links   map[int]*Link
	variant int  // the first that this kernel may have
	v6      bool // IPv6 passes
	queue   *netns.Queue
	stop    context.CancelFunc // of the heart; nil while there is no link
	beats   sync.WaitGroup
}

// LinkOptions say whose link it is.
type LinkOptions struct {
	Name string // the environment's
	// Netns is its network namespace; the file stays the caller's, and open until
	// the link is closed.
	Netns  *os.File
	Limits rules.Limits
	// Decide is called with the first packet of each flow, and must not block. The
	// source is known to be the link's.
	Decide func(*Packet)
	// Count is told each second how many bytes have passed. May be nil.
	Count func(in, out uint64)
}

// Open removes what a daemon of the instance left behind that has ended.
func Open(o Options) (*Host, error) {
	if !o.V4.IsValid() {
		o.V4 = DefaultV4
	}
	if !o.V6.IsValid() {
		o.V6 = DefaultV6
	}
	p, err := newPool(o.V4, o.V6)
	if err != nil {
		return nil, err
	}
	id := instanceID(o.Instance)
	h := &Host{opts: o, prefix: namePrefix + id + "-", table: "exec-server-" + id, pool: p, links: map[int]*Link{}}
	h.sources.Store(&map[netip.Addr]*Link{})
	if h.former, err = h.sweep(); err != nil {
		return nil, fmt.Errorf("remove what is left of links: %w", err)
	}
	return h, nil
}

func instanceID(instance string) string {
	sum := sha256.Sum256([]byte(instance))
	return hex.EncodeToString(sum[:4])
}

// Add makes a link. What the namespace has of one before is replaced.
func (h *Host) Add(o LinkOptions) (*Link, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop == nil {
		if err := h.start(); err != nil {
			return nil, fmt.Errorf("veth: %w", err)
		}
	}
	l, err := h.add(o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("veth: %w", err), h.rest())
	}
	return l, nil
}

func (h *Host) add(o LinkOptions) (*Link, error) {
	i, err := h.index(o.Name)
	if err != nil {
		return nil, err
	}
	l := &Link{opts: o, host: h, index: i, name: fmt.Sprintf("%s%04x", h.prefix, i), pair: h.pool.pair(i)}
	// The table comes first: at no time is there a link without it.
	if err := h.load(l.addChains); err != nil {
		return nil, err
	}
	h.links[i] = l
	h.setSources()
	// What had the addresses before may have been allowed more.
	err = l.Cut(func(netns.Flow) bool { return true })
	if err == nil {
		err = l.plug(h.v6)
	}
	if err != nil {
		return nil, errors.Join(err, l.remove())
	}
	return l, nil
}

// Close removes all links.
func (h *Host) Close() error {
	h.mu.Lock()
	var errs []error
	for _, l := range h.links {
		errs = append(errs, l.remove())
	}
	errs = append(errs, h.rest())
	h.mu.Unlock()
	h.beats.Wait()
	for _, f := range []*os.File{h.errors4, h.errors6} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("veth: remove the links: %w", err)
	}
	return nil
}

// Own tells whether an address is one of the links'.
func (h *Host) Own(a netip.Addr) bool { return h.opts.V4.Contains(a) || h.opts.V6.Contains(a) }
