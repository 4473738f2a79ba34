package policy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/exec-server/exec-server/internal/address"
)

// Reasons of decisions. A client's own ones come beside them.
const (
	Allowed          = "allow"
	NotAllowed       = "not_allowed"       // no rule allows it
	NotAllowedLocal  = "not_allowed_local" // it is of this machine or its network, or unknown
	Denied           = "denied"            // a rule denies it
	MethodNotAllowed = "method_not_allowed"
	MITMRequired     = "mitm_required" // the mode needs to see what is encrypted
	UnixUnsupported  = "unix_socket_unsupported"
	PolicyDenied     = "policy_denied" // a client denied it and gave an empty reason
)

// Policy decides about hosts. It is immutable.
type Policy struct {
	allow, deny []pattern
	// LocalOK lets hosts of this machine and its network be allowed like others.
	LocalOK bool
}

// New compiles rules: hosts and what to do with them, "allow", "deny", or
// anything else for nothing. Of several errors it tells the one that the
// reference finds first.
func New(domains map[string]string, localOK bool) (*Policy, error) {
	p := &Policy{LocalOK: localOK}
	for _, name := range slices.Sorted(maps.Keys(domains)) {
		if domains[name] != "deny" {
			continue
		}
		rule, err := parsePattern(name)
		if err != nil {
			return nil, err
		}
		if rule.everything() {
			return nil, fmt.Errorf("invalid value for network.denied_domains: %s (allowed exact hosts or scoped wildcards like *.example.com or **.example.com)", strings.TrimSpace(name))
		}
		p.deny = append(p.deny, rule)
	}
	for _, name := range slices.Sorted(maps.Keys(domains)) {
		if domains[name] != "allow" {
			continue
		}
		rule, err := parsePattern(name)
		if err != nil {
			return nil, err
		}
		p.allow = append(p.allow, rule)
	}
	return p, nil
}

// Check is what the rules alone say about a host: Allowed, Denied, NotAllowed or
// NotAllowedLocal. Named is true if a host that is local on the face of it is
// allowed by a rule of its own.
func (p *Policy) Check(h Host) (reason string, named bool) {
	for _, rule := range p.deny {
		if rule.matches(h) {
			return Denied, false
		}
	}
	if !p.LocalOK && h.local() {
		for _, rule := range p.allow {
			if rule.exact(h) {
				return Allowed, true
			}
		}
		return NotAllowedLocal, false
	}
	for _, rule := range p.allow {
		if rule.matches(h) {
			return Allowed, false
		}
	}
	return NotAllowed, false
}

// Resolved is what the addresses behind an allowed name add: NotAllowedLocal if
// there are none or one of them is not public, and Denied if a rule denies one.
func (p *Policy) Resolved(addrs []netip.Addr) (reason string) {
	if len(addrs) == 0 && !p.LocalOK {
		return NotAllowedLocal
	}
	for _, addr := range addrs {
		h := Host{name: addr.String(), addr: addr}
		for _, rule := range p.deny {
			if rule.addr.IsValid() && rule.matches(h) {
				return Denied
			}
		}
		if !p.LocalOK && !address.IsPublic(addr) {
			return NotAllowedLocal
		}
	}
	return Allowed
}
