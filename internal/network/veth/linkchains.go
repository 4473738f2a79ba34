package veth

import (
	"fmt"
	"math"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

const (
	// freshRate is how many flows a second of a link are asked about.
	freshRate = 1000
	// maxFlows is how many flows a link has at a time, unless its policy says. Each
	// is an entry of the kernel's table of all connections of the host.
	maxFlows = 1024
)

// chainName is that of one of the link's own chains, and of its counter.
func (l *Link) chainName(of string) string { return fmt.Sprintf("%s-%04x", of, l.index) }

// addChains adds the link's part to the table.
func (l *Link) addChains(t transaction) error {
	l.in, l.out = 0, 0
	for _, name := range []string{mapOut, mapIn} {
		t.AddObj(&nftables.CounterObj{Table: t.table, Name: l.chainName(name)})
	}
	if err := l.setChains(t); err != nil {
		return err
	}
	for _, name := range []string{mapFrom, mapOut, mapIn} {
		if err := t.SetAddElements(t.links(name), l.element(name)); err != nil {
			return err
		}
	}
	return nil
}

func (l *Link) element(name string) []nftables.SetElement {
	return []nftables.SetElement{{
		Key: ifname(l.name), VerdictData: &expr.Verdict{Kind: expr.VerdictGoto, Chain: l.chainName(name)},
	}}
}

// setChains fills the link's chains anew.
func (l *Link) setChains(t transaction) error {
	chain := func(name string) func(...[]expr.Any) {
		c := &nftables.Chain{Name: l.chainName(name), Table: t.table}
		t.AddChain(c)
		t.FlushChain(c)
		return t.adder(c)
	}
	from := chain(mapFrom)
	from(ipv4.is(), ipv4.source(l.guest4, unequal), drop())
	from(ipv6.is(), ipv6.source(l.guest6, unequal), drop())
	from(states(stateNew), confirmed(equal), over(expr.LimitTypePkts, freshRate, freshRate), drop())
	from(jump("asked"))

	out := chain(mapOut)
	if t.count {
		n := uint32(maxFlows)
		if most := l.opts.Limits.Connections; most > 0 {
			n = uint32(min(most, math.MaxUint32))
		}
		const inverted = 1 // matches what is over the count
		out(states(stateNew), confirmed(equal), []expr.Any{&expr.Connlimit{Count: n, Flags: inverted}}, drop())
	}
	l.pass(out, mapOut)
	l.pass(chain(mapIn), mapIn)
	return nil
}

// pass lets pass what the bandwidth allows.
func (l *Link) pass(add func(...[]expr.Any), name string) {
	if rate := l.opts.Limits.BytesPerSecond; rate > 0 {
		add(over(expr.LimitTypePktBytes, uint64(rate), uint32(min(max(rate, minBurst), math.MaxUint32))), drop())
	}
	add([]expr.Any{&expr.Objref{Type: unix.NFT_OBJECT_COUNTER, Name: l.chainName(name)}}, accept())
}

// minBurst lets the largest packet pass.
const minBurst = 1 << 16

// deleteChains takes the link's part out of the table.
func (l *Link) deleteChains() error {
	return l.host.try(variant{}, func(t transaction) error {
		for _, name := range []string{mapFrom, mapOut, mapIn} {
			if err := t.SetDeleteElements(t.links(name), l.element(name)); err != nil {
				return err
			}
			c := &nftables.Chain{Name: l.chainName(name), Table: t.table}
			t.FlushChain(c)
			t.DelChain(c)
		}
		for _, name := range []string{mapOut, mapIn} {
			t.DeleteObject(&nftables.CounterObj{Table: t.table, Name: l.chainName(name)})
		}
		return nil
	})
}
