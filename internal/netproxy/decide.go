package netproxy

import (
	"context"
	"net/netip"
	"net/url"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

// Where decisions come from.
const (
	byRules  = "baseline_policy"
	byClient = "decider"
	byMode   = "mode_guard"
	byState  = "proxy_state"
)

// request is what a decision is about.
type request struct {
	protocol string
	host     policy.Host
	port     uint16
	method   string
	client   string
}

func (r *request) decision(scope, verdict, source, reason string) *policy.Decision {
	return &policy.Decision{
		Target: r.target(), Scope: scope, Verdict: verdict, Source: source, Reason: reason, Method: r.method, Client: r.client,
	}
}

func (r *request) target() policy.Target {
	return policy.Target{Protocol: r.protocol, Host: r.host.String(), Port: r.port}
}

// route is where a request that was let through goes: the addresses that were
// decided about, or another proxy.
type route struct {
	addrs    []netip.Addr
	port     uint16
	upstream *url.URL
}

// decide decides about a host and reports it. The route is valid if the verdict
// is to allow.
func (p *Proxy) decide(ctx context.Context, r *request) (route, *policy.Decision) {
	reason, named := p.policy.Check(r.host)
	d := r.decision("domain", "deny", byRules, reason)
	switch {
	case reason == policy.Allowed:
		d.Verdict = "allow"
	case reason == policy.NotAllowed && p.ask != nil:
		a := p.ask(ctx, r.target())
		d.Source, d.Verdict = byClient, a.Verdict
		if a.Verdict == "allow" {
			d.Override = true // and the reason stays that of the rules
		} else {
			d.Reason = a.Reason
		}
	}
	to := route{port: r.port}
	if d.Verdict == "allow" {
		to.addrs = p.addresses(ctx, r.host)
		behind := p.policy.Resolved(to.addrs)
		if behind == policy.Denied || behind == policy.NotAllowedLocal && !named {
			d = r.decision("domain", "deny", byRules, behind)
		}
	}
	p.report(d)
	return to, d
}

// refuse reports a decision that is not about the host.
func (p *Proxy) refuse(r *request, source, reason string) *policy.Decision {
	d := r.decision("non_domain", "deny", source, reason)
	p.report(d)
	return d
}

// addresses looks a host up, once for the decision and the connection.
func (p *Proxy) addresses(ctx context.Context, h policy.Host) []netip.Addr {
	if addr := h.Addr(); addr.IsValid() {
		return []netip.Addr{addr.Unmap()}
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addrs, err := p.resolve(ctx, h.String())
	if err != nil {
		return nil
	}
	for i, addr := range addrs {
		addrs[i] = addr.Unmap()
	}
	return addrs
}
