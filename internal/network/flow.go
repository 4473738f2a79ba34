package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/netns"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// dialTime is how long a connection is tried: as long as Linux does.
const dialTime = 127 * time.Second

// What becomes of a first packet that is not accepted.
var (
	errRefuse = errors.New("to be refused")
	errDrop   = errors.New("to be dropped") // so that it is sent again, or times out
)

// verdict is given once to the first packet of a connection.
type verdict interface {
	Accept()
	Refuse()
	Drop()
}

// first is called with the first packet of a connection, and each time that it is
// sent again. It does not block: the upstream connection is made meanwhile, so that
// the program's is made if and when that one is.
func (w *Way) first(k key, v verdict) {
	ctx, cancel := context.WithCancel(w.ctx)
	if !w.book.begin(k, v, cancel) {
		cancel()
		return
	}
	started := w.spawn(func() {
		defer cancel()
		c, err := w.reach(ctx, k)
		if err == nil {
			if w.book.put(k, c) {
				return
			}
			w.drop(c)
			err = errDrop
		}
		switch v := w.book.fail(k); {
		case v == nil:
		case errors.Is(err, errDrop):
			v.Drop()
		default:
			v.Refuse()
		}
	})
	if !started {
		cancel()
		if v := w.book.fail(k); v != nil {
			v.Drop()
		}
	}
}

// reach decides about a connection, and makes its upstream side. The connection has
// a place in the budget then, which drop gives back.
func (w *Way) reach(ctx context.Context, k key) (*connection, error) {
	if !w.budget.enter() {
		w.denied(&connection{key: k}, rules.Said{}, rules.Decision{Reason: rules.TooMany, Rule: -1})
		return nil, errRefuse
	}
	c, err := w.try(ctx, k)
	if err != nil {
		w.budget.leave()
		return nil, err
	}
	return c, nil
}

func (w *Way) try(ctx context.Context, k key) (*connection, error) {
	c := &connection{key: k, opinion: w.judge(ctx, k)}
	if c.decision.Verdict == rules.Deny {
		w.denied(c, rules.Said{}, c.decision)
		return nil, errRefuse
	}
	if w.budget.exhausted() {
		w.denied(c, rules.Said{}, rules.Decision{Reason: rules.TooMuch, Rule: -1})
		return nil, errRefuse
	}
	if !w.budget.fresh() {
		w.denied(c, rules.Said{}, rules.Decision{Reason: rules.TooMany, Rule: -1})
		return nil, errDrop
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	var err error
	if c.upstream, err = w.dial(ctx, k.to); err == nil {
		return c, nil
	}
	w.opts.Log.Debug().Err(err).Msg("network: connect")
	var timeout net.Error
	if ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout() {
		return nil, errDrop
	}
	return nil, errRefuse
}

// opinion is what was decided about a connection by its addresses.
type opinion struct {
	flow     rules.Flow
	decision rules.Decision
	table    *rules.Table // which decided
}

// judge decides about a connection by its addresses. A program may use an address
// for longer than the name's answer is good for: it is looked up again then.
func (w *Way) judge(ctx context.Context, k key) opinion {
	a := k.to.Addr()
	flow := rules.Flow{Protocol: rules.TCP, Addr: a, Port: k.to.Port(), Own: w.own(a), Names: w.names.Names(a)}
	o := w.opine(flow)
	if r := o.decision.Reason; o.decision.Verdict == rules.Deny && (r == rules.ByMode || r == rules.ByRule) {
		flow.Names = w.names.Refresh(ctx, a)
		o = w.opine(flow)
	}
	return o
}

func (w *Way) opine(f rules.Flow) opinion {
	t := w.table.Load()
	return opinion{flow: f, decision: t.Connect(f), table: t}
}

// dialHost connects from the host.
func dialHost(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive}
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// keepAlive finds ends that have gone without a word, within some minutes.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 8}

// other is told of what is neither TCP nor DNS, and was refused.
func (w *Way) other(f netns.Flow) {
	a := f.Dst.Addr()
	flow := rules.Flow{Protocol: "ip", Addr: a, Port: f.Dst.Port(), Own: w.own(a), Names: w.names.Names(a)}
	switch f.Protocol {
	case unix.IPPROTO_UDP:
		flow.Protocol = rules.UDP
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		flow.Protocol = rules.ICMP
	}
	d := w.table.Load().Connect(flow)
	if d.Verdict != rules.Deny {
		d = rules.Decision{Reason: rules.Unsupported, Rule: -1}
	}
	w.denied(&connection{key: key{f.Src, f.Dst}, opinion: opinion{flow: flow}}, rules.Said{}, d)
}
