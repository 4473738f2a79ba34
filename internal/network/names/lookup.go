package names

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// DeniedError is the error of looking up a name that may not resolve.
type DeniedError struct{ Decision rules.Decision }

func (e *DeniedError) Error() string {
	return "the policy denies the name (" + string(e.Decision.Reason) + ")"
}

// errBusy is the error where too many questions wait for upstream.
var errBusy = errors.New("too many queries at once")

// lookup is find for a program's sake.
func (n *Names) lookup(ctx context.Context, name string, v6 bool) (found, error) {
	return n.find(ctx, name, v6, n.o.Report)
}

// find returns a name's addresses of one family: those that are pinned to it, or else
// what upstream says, which it pins. What the policy takes out is reported. The name
// is as address.Name returns it.
func (n *Names) find(ctx context.Context, name string, v6 bool, report func(Event)) (found, error) {
	if isLocal(name) {
		return local(v6), nil
	}
	if d := n.resolve(name); d.Verdict != rules.Allow {
		return found{}, &DeniedError{d}
	}
	k := key{name, v6}
	if f, ok := n.pins.get(k, time.Now()); ok {
		return n.permitted(k, f, report), nil
	}
	r, err := n.ask(ctx, name, family(v6))
	if err != nil {
		return found{}, err
	}
	now := time.Now()
	f := found{addrs: r.addrs, missing: r.missing, until: now.Add(r.ttl)}
	if len(f.addrs) == 0 {
		if r.ttl > 0 {
			n.pins.put(k, f)
		}
		return f, nil
	}
	// What the policy takes out is not pinned. If that is everything it is not
	// remembered either, and is right as soon as the name is.
	if f = n.permitted(k, f, report); len(f.addrs) > 0 {
		n.pins.put(k, f)
	}
	return f, nil
}

// resolve is what the policy says of a name now.
func (n *Names) resolve(name string) rules.Decision {
	if under(name, "arpa") {
		return rules.Decision{Verdict: rules.Deny, Reason: rules.ByMode, Rule: -1}
	}
	return n.o.Table().Resolve(name)
}

// permitted returns an answer without the addresses that the policy does not let the
// name have, each of which is reported.
func (n *Names) permitted(k key, f found, report func(Event)) found {
	table := n.o.Table()
	addrs := make([]netip.Addr, 0, len(f.addrs))
	for _, a := range f.addrs {
		d := table.Answer(k.name, a, n.o.Own(a))
		if d.Verdict == rules.Allow {
			addrs = append(addrs, a)
			continue
		}
		f.removed = append(slices.Clip(f.removed), a)
		report(Event{Kind: Removed, Name: k.name, Type: typeName(family(k.v6)), Addr: a, Reason: d.Reason, Rule: d.Rule})
	}
	f.addrs = addrs
	return f
}

// ask asks upstream, when it is this environment's turn.
func (n *Names) ask(ctx context.Context, name string, qtype uint16) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	select {
	case n.asking <- struct{}{}:
	case <-ctx.Done():
		return nil, errBusy
	}
	defer func() { <-n.asking }()
	if len(n.asking) > n.o.Upstream.room() {
		return nil, errBusy // there are to be some for others
	}
	return n.o.Upstream.ask(ctx, name, qtype)
}

// isLocal says whether a name is the environment's own loopback (RFC 6761).
func isLocal(name string) bool { return under(name, "localhost") }

// local returns the addresses of such a name.
func local(v6 bool) found {
	a := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if v6 {
		a = netip.IPv6Loopback()
	}
	return found{addrs: []netip.Addr{a}, until: time.Now().Add(maxTTL)}
}

// typeName returns a type as zone files have it.
func typeName(t uint16) string { return dns.Type(t).String() }
