package veth

import (
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The maps from interfaces to the chains of links.
const (
	mapFrom = "from" // what comes from it, before it is asked about
	mapOut  = "out"  // and after
	mapIn   = "in"   // what goes to it
)

// priority is just before that of the filters that others have.
const priority = -10

// addBase adds the chains that all links have in common.
func (t transaction) addBase() {
	t.addAsk()
	t.addPass()
	for _, hook := range []struct {
		name string
		num  *nftables.ChainHook
	}{{"forward", nftables.ChainHookForward}, {"input", nftables.ChainHookInput}} {
		ask := t.base("ask-"+hook.name, hook.num, priority-1)
		ask(t.from(), jump("ask"))
		then := t.base("pass-"+hook.name, hook.num, priority)
		if hook.num == nftables.ChainHookInput {
			// The host itself has nothing for them.
			then(t.from(), drop())
			continue
		}
		then(t.from(), jump("pass"))
		then(t.to(equal), jump("in"))
	}
	// Errors are all that the host has to say, and nobody gets to a guest by it.
	host := t.base("host", nftables.ChainHookOutput, priority)
	host(t.to(equal), protocol(unix.IPPROTO_ICMP), accept())
	host(t.to(equal), protocol(unix.IPPROTO_ICMPV6), accept())
	host(t.to(equal), drop())
	nat := t.AddChain(&nftables.Chain{Name: "masquerade", Table: t.table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource})
	for _, f := range t.h.families() {
		t.AddRule(&nftables.Rule{Table: t.table, Chain: nat, Exprs: join(f.is(), f.within(), t.to(unequal), []expr.Any{&expr.Masq{}})})
	}
}

// addAsk has new flows asked about. What is accepted goes on to the next base chain.
func (t transaction) addAsk() {
	asked := t.chain("asked")
	asked(protocol(unix.IPPROTO_TCP), drop())
	asked(t.dead(), drop())
	// What was sent on once is confirmed. Errors of the guest's are not believed.
	asked(states(stateNew|stateEstablished), confirmed(unequal), accept())
	asked(protocol(unix.IPPROTO_ICMP), icmp(8, unequal), drop())
	asked(protocol(unix.IPPROTO_ICMPV6), icmp(128, unequal), drop())
	asked(states(stateNew), t.toQueue())
	asked(drop())

	ask := t.chain("ask")
	ask(t.byName(expr.MetaKeyIIFNAME, mapFrom))
	ask(drop())
}

// addPass has what was allowed pass: out, but not to other links, and in.
func (t transaction) addPass() {
	pass := t.chain("pass")
	pass(t.to(equal), drop())
	pass(t.byName(expr.MetaKeyIIFNAME, mapOut))
	pass(drop())

	in := t.chain("in")
	in(t.dead(), drop())
	in(states(stateEstablished), t.byName(expr.MetaKeyOIFNAME, mapIn))
	in(states(stateRelated), protocol(unix.IPPROTO_ICMP), t.byName(expr.MetaKeyOIFNAME, mapIn))
	in(states(stateRelated), protocol(unix.IPPROTO_ICMPV6), t.byName(expr.MetaKeyOIFNAME, mapIn))
	in(drop())
}

// chain adds one that others lead to, and returns what adds rules to it.
func (t transaction) chain(name string) func(...[]expr.Any) {
	return t.adder(t.AddChain(&nftables.Chain{Name: name, Table: t.table}))
}

func (t transaction) base(name string, hook *nftables.ChainHook, p nftables.ChainPriority) func(...[]expr.Any) {
	return t.adder(t.AddChain(&nftables.Chain{Name: name, Table: t.table, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: &p}))
}

func (t transaction) adder(c *nftables.Chain) func(...[]expr.Any) {
	return func(parts ...[]expr.Any) { t.AddRule(&nftables.Rule{Table: t.table, Chain: c, Exprs: join(parts...)}) }
}
