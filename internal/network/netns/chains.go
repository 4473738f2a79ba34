package netns

import (
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// deniedRate is how many packets a second, that are neither TCP nor DNS, are told of.
const deniedRate = 20

// closedPort is where packets go that are to be refused: nobody can listen there.
const closedPort = 0

// addDecide adds the chain that asks about packets of TCP. The queue has no bypass:
// without somebody who answers, packets are dropped. What is refused anyway is only
// told of, so that it is refused at once.
func addDecide(c *nftables.Conn, t *nftables.Table, v variant) {
	chain := c.AddChain(&nftables.Chain{Name: "decide", Table: t, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityMangle})
	add := func(parts ...[]expr.Any) { c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: join(parts...)}) }

	add(setMark(0))
	add(local(), accept())
	for _, p := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
		add(protocol(p), port(53), accept())
	}
	add(protocol(unix.IPPROTO_TCP), states(stateNew|stateRelated), v.toQueue())
	if v.log {
		add(notStates(stateEstablished), limit(deniedRate), toLog())
	}
}

// addSteer adds the chain that gives the first packet of a connection another
// destination; the kernel does the same with those that follow.
func addSteer(c *nftables.Conn, t *nftables.Table, targets []target) {
	chain := c.AddChain(&nftables.Chain{Name: "steer", Table: t, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest})
	add := func(parts ...[]expr.Any) { c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: join(parts...)}) }

	for _, g := range targets {
		add(g.is(), g.notGateway(), local(), accept())
		add(g.is(), protocol(unix.IPPROTO_UDP), port(53), g.send(g.dnsUDP))
		add(g.is(), protocol(unix.IPPROTO_TCP), port(53), g.send(g.dnsTCP))
		add(g.is(), protocol(unix.IPPROTO_TCP), marked(markAccepted), g.send(g.tcp))
		add(g.is(), protocol(unix.IPPROTO_TCP), g.send(closedPort))
		add(g.is(), protocol(unix.IPPROTO_UDP), g.send(closedPort))
	}
}

// addRest adds the chain that stops what was not sent elsewhere: programs are told
// that it is not permitted.
func addRest(c *nftables.Conn, t *nftables.Table) {
	drop := nftables.ChainPolicyDrop
	chain := c.AddChain(&nftables.Chain{Name: "rest", Table: t, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter, Policy: &drop})
	c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: join(local(), accept())})
}
