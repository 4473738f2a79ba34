package veth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/netns"
)

// firstQueue is the number that is tried first: few begin with it.
const firstQueue = 0x6578

// interval is how often the sign of life is given.
const interval = time.Second

// start prepares the host for the first link. mu is held.
func (h *Host) start() (err error) {
	if err := h.overlap(); err != nil {
		return err
	}
	if h.v6, err = h.forward(); err != nil {
		return err
	}
	if h.errors4 == nil {
		if h.errors4, err = openErrors(unix.AF_INET); err != nil {
			return err
		}
		h.errors6, _ = openErrors(unix.AF_INET6)
	}
	if h.queue, err = netns.OpenQueue(firstQueue, h.decide); err != nil {
		return err
	}
	if err := h.load(transaction.newTable); err != nil {
		h.queue.Close()
		return err
	}
	for _, text := range Hindrances() {
		h.opts.Log.Warn().Msg("veth: " + text)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	h.beats.Go(func() { h.run(ctx) })
	return nil
}

// rest ends what start has begun when there is no link any more. mu is held.
func (h *Host) rest() error {
	if len(h.links) > 0 || h.stop == nil {
		return nil
	}
	h.stop()
	h.stop = nil
	h.queue.Close()
	return h.deleteTable()
}

// run gives the sign of life until the end.
func (h *Host) run(ctx context.Context) {
	deleted, end := watch()
	defer end()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-deleted: // or else it is noticed by the next tick
		}
		h.pulse(ctx)
	}
}

// pulse is one beat. If the table has gone, it is made again.
func (h *Host) pulse(ctx context.Context) {
	h.mu.Lock()
	if ctx.Err() != nil {
		h.mu.Unlock()
		return
	}
	err := h.beat()
	if errors.Is(err, unix.ENOENT) {
		h.opts.Log.Error().Msg("veth: somebody has deleted the table of nftables")
		err = h.restore()
	}
	var counts []func()
	if err == nil {
		counts, err = h.counts()
	}
	h.mu.Unlock()
	if err != nil {
		h.opts.Log.Error().Err(err).Msg("veth")
	}
	for _, f := range counts {
		f()
	}
}

// restore makes the table again, with the links down until it is there. What began
// meanwhile is asked about. mu is held.
func (h *Host) restore() error {
	var errs []error
	for _, l := range h.links {
		errs = append(errs, withLink(l.name, netlink.LinkSetDown))
	}
	errs = append(errs, h.load(transaction.newTable))
	for _, l := range h.links {
		errs = append(errs, l.Cut(func(netns.Flow) bool { return true }))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, l := range h.links {
		// Being down took routes and neighbours away.
		errs = append(errs, l.plug(h.v6))
	}
	return errors.Join(errs...)
}

func withLink(name string, f func(netlink.Link) error) error {
	l, err := netlink.LinkByName(name)
	if err == nil {
		err = f(l)
	}
	if err != nil && !missing(err) {
		return fmt.Errorf("change %s: %w", name, err)
	}
	return nil
}

// counts finds out what has passed since it was found out last, and returns what
// tells so. mu is held.
func (h *Host) counts() ([]func(), error) {
	now, err := h.counted()
	if err != nil {
		return nil, err
	}
	var tell []func()
	for _, l := range h.links {
		in, out := now[l.chainName(mapIn)], now[l.chainName(mapOut)]
		if f := l.opts.Count; f != nil && in >= l.in && out >= l.out && in+out > l.in+l.out {
			newIn, newOut := in-l.in, out-l.out
			tell = append(tell, func() { f(newIn, newOut) })
		}
		l.in, l.out = in, out
	}
	return tell, nil
}
