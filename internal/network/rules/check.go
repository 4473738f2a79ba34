package rules

import "slices"

// Clone is a copy that shares nothing with the policy.
func (p Policy) Clone() Policy {
	p.Rules = slices.Clone(p.Rules)
	for i, r := range p.Rules {
		r.Allow, r.Deny = slices.Clone(r.Allow), slices.Clone(r.Deny)
		r.Ports, r.Protocols = slices.Clone(r.Ports), slices.Clone(r.Protocols)
		if r.Credential != nil {
			c := *r.Credential
			c.SecretCommand = slices.Clone(c.SecretCommand)
			r.Credential = &c
		}
		p.Rules[i] = r
	}
	return p
}

func (p *Policy) check() error {
	switch {
	case p.Mode != None && p.Mode != Rules && p.Mode != Open:
		return wrong("mode", "%q is none of none, rules, open", p.Mode)
	case p.BytesPerSecond < 0:
		return wrong("bandwidth", "%d is less than 0", p.BytesPerSecond)
	case p.Bytes < 0:
		return wrong("volume", "%d is less than 0", p.Bytes)
	case p.Connections < 0:
		return wrong("connections", "%d is less than 0", p.Connections)
	case p.Connections > MaxConnections:
		return wrong("connections", "%d is more than %d", p.Connections, MaxConnections)
	case p.ConnectionsPerSecond < 0:
		return wrong("connection_rate", "%d is less than 0", p.ConnectionsPerSecond)
	case len(p.Rules) > maxRules:
		return wrong("rule", "there are %d, and there can be %d", len(p.Rules), maxRules)
	}
	return nil
}

// entries checks a rule and takes it apart.
func (r *Rule) entries(veth, intercept bool) ([]*entry, *Error) {
	list, key, isDeny := r.Allow, "allow", false
	if len(r.Deny) > 0 {
		list, key, isDeny = r.Deny, "deny", true
	}
	switch {
	case len(r.Allow)+len(r.Deny) == 0:
		return nil, wrong("", "it needs allow or deny")
	case len(r.Allow) > 0 && len(r.Deny) > 0:
		return nil, wrong("", "it has both allow and deny; make it two rules")
	}
	if err := r.check(isDeny, veth); err != nil {
		return nil, err
	}
	if err := r.Credential.check(r, intercept); err != nil {
		return nil, err
	}
	all := make([]*entry, 0, len(list))
	for _, s := range list {
		e := &entry{deny: isDeny, credential: r.Credential, narrowPorts: len(r.Ports) > 0, narrowProtocols: len(r.Protocols) > 0}
		if problem := e.parse(s); problem != "" {
			return nil, wrong(key, "%q: %s", s, problem)
		}
		if e.credential != nil && e.name == "" {
			return nil, wrong("credential", "%q is no name, and only to names credentials are sent", s)
		}
		e.defaults(r)
		all = append(all, e)
	}
	return all, nil
}

func (r *Rule) check(isDeny, veth bool) *Error {
	if len(r.Ports) > maxPorts {
		return wrong("ports", "there are %d, and there can be %d", len(r.Ports), maxPorts)
	}
	for _, p := range r.Ports {
		if p.First == 0 || p.Last < p.First {
			return wrong("ports", "%q is no port and no range of them", p)
		}
	}
	for _, p := range r.Protocols {
		switch {
		case bits[p] == 0:
			return wrong("protocols", "%q is none of tcp, tls, http, udp, icmp", p)
		case p == ICMP && len(r.Ports) > 0:
			return wrong("protocols", "icmp has no ports; make it a rule of its own")
		case (p == UDP || p == ICMP) && !isDeny && !veth:
			return wrong("protocols", "%s needs veth = true", p)
		}
	}
	return nil
}

// defaults are what a rule leaves out.
func (e *entry) defaults(r *Rule) {
	named := !e.deny && e.name != ""
	e.ports = r.Ports
	if len(e.ports) == 0 {
		e.ports = nil
		if named {
			e.ports = []Ports{{80, 80}, {443, 443}}
		}
	}
	switch {
	case len(r.Protocols) > 0:
		e.protocols = setOf(r.Protocols...)
	case r.Credential != nil:
		e.protocols = setOf(TLS)
	case named:
		e.protocols = setOf(TLS, HTTP)
	case !e.deny:
		e.protocols = setOf(TCP)
	case len(r.Ports) > 0:
		e.protocols = setOf(TCP, TLS, HTTP, UDP)
	default:
		e.protocols = setOf(TCP, TLS, HTTP, UDP, ICMP)
	}
}
