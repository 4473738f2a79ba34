package network

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/netns"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/network/veth"
)

const (
	// linkLabel is what the bytes of the link count as: the kernel counts them by
	// link, not by name.
	linkLabel = "veth"
	// maxAsking is how many first datagrams may wait for names to be looked up again.
	maxAsking = 64
)

var errNoLink = errors.New("veth: this server makes no links")

// setLink makes or removes the link, as the policy has it. setting is held.
func (w *Way) setLink(p rules.Policy) error {
	l := w.link.Load()
	wanted := p.VEth && p.Mode != rules.None
	switch {
	case !wanted && l == nil:
		return nil
	case !wanted:
		err := l.Close()
		if err == nil {
			w.link.Store(nil)
		}
		return err
	case l != nil:
		return l.SetLimits(p.Limits)
	case w.opts.VEth == nil:
		return errNoLink
	}
	l, err := w.opts.VEth.Add(veth.LinkOptions{
		Name: w.opts.Name, Netns: w.opts.Netns, Limits: p.Limits, Decide: func(p *veth.Packet) { w.datagram(p.Flow, p) }, Count: w.passed,
	})
	if err == nil {
		w.link.Store(l)
	}
	return err
}

// cut ends the flows over the link that denied says.
func (w *Way) cut(denied func(netns.Flow) bool) error {
	l := w.link.Load()
	if l == nil {
		return nil
	}
	return l.Cut(denied)
}

// passed is told how much has passed over the link. When the volume is used up, what
// has begun is asked about again, and denied.
func (w *Way) passed(incoming, outgoing uint64) {
	c := w.counters.bytes(linkLabel)
	c.add(in, int64(incoming))
	c.add(out, int64(outgoing))
	w.budget.used.Add(int64(incoming + outgoing))
	if !w.budget.exhausted() {
		return
	}
	if err := w.cut(func(netns.Flow) bool { return true }); err != nil {
		w.opts.Log.Error().Err(err).Msg("network: volume")
	}
}

// datagram decides about the first packet of what goes over the link. It does not
// block.
func (w *Way) datagram(f netns.Flow, v verdict) {
	flow := w.datagramFlow(f)
	d := w.table.Load().Connect(flow)
	if d.Verdict == rules.Allow || d.Reason != rules.ByMode && d.Reason != rules.ByRule {
		w.settle(f, flow, d, v)
		return
	}
	// A name's answers may be used for longer than they are good for, as in judge.
	select {
	case w.asking <- struct{}{}:
	default:
		v.Drop()
		return
	}
	started := w.spawn(func() {
		defer func() { <-w.asking }()
		ctx, cancel := context.WithTimeout(w.ctx, holdTime)
		defer cancel()
		flow.Names = w.names.Refresh(ctx, flow.Addr)
		w.settle(f, flow, w.table.Load().Connect(flow), v)
	})
	if !started {
		<-w.asking
		v.Drop()
	}
}

// settle gives the verdict.
func (w *Way) settle(f netns.Flow, flow rules.Flow, d rules.Decision, v verdict) {
	switch {
	case d.Verdict != rules.Allow:
	case flow.Protocol == rules.UDP && flow.Port == 53:
		d = rules.Decision{Reason: rules.Unsupported, Rule: -1} // it has a path of its own
	case flow.Own:
		d = rules.Decision{Reason: rules.OwnAddress, Rule: -1} // whatever a rule opens
	case w.budget.exhausted():
		d = rules.Decision{Reason: rules.TooMuch, Rule: -1}
	case !w.budget.fresh():
		w.deniedDatagram(f, flow, rules.Decision{Reason: rules.TooMany, Rule: -1})
		v.Drop()
		return
	default:
		c := &connection{key: key{f.Src, f.Dst}, opinion: opinion{flow: flow}}
		w.counters.allow(c.label(rules.Said{}))
		v.Accept()
		return
	}
	w.deniedDatagram(f, flow, d)
	v.Refuse()
}

func (w *Way) deniedDatagram(f netns.Flow, flow rules.Flow, d rules.Decision) {
	w.denied(&connection{key: key{f.Src, f.Dst}, opinion: opinion{flow: flow}}, rules.Said{}, d)
}

// datagramFlow is a flow that is neither TCP nor DNS, as the rules have it.
func (w *Way) datagramFlow(f netns.Flow) rules.Flow {
	a := f.Dst.Addr()
	flow := rules.Flow{Protocol: "ip", Addr: a, Port: f.Dst.Port(), Own: w.own(a), Names: w.names.Names(a)}
	switch f.Protocol {
	case unix.IPPROTO_UDP:
		flow.Protocol = rules.UDP
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		flow.Protocol = rules.ICMP
	}
	return flow
}
