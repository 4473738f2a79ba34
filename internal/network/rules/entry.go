package rules

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// kind is the level of the table of precedence that an entry stands on.
type kind int

const (
	exact kind = iota
	prefix
	suffix
	everything
)

// entry is one name, address or prefix of a rule.
type entry struct {
	order  int // its place in the order of precedence
	rule   int // index in the policy
	deny   bool
	what   string // as explanations have it
	kind   kind
	name   string       // of exact and suffix, without its "*."
	prefix netip.Prefix // of prefix, and of 0.0.0.0/0 and ::/0

	ports           []Ports // nil is all
	protocols       protocols
	narrowPorts     bool // the rule says which
	narrowProtocols bool
	credential      *Credential
}

// compare is the order of precedence: level, length, and among equals those that
// say more first, and to deny before to allow.
func compare(a, b *entry) int {
	first := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(a.kind, b.kind),
		cmp.Compare(b.length(), a.length()),
		first(a.narrowPorts, b.narrowPorts),
		first(a.narrowProtocols, b.narrowProtocols),
		first(a.deny, b.deny),
		cmp.Compare(a.rule, b.rule),
	)
}

func (e *entry) length() int {
	switch e.kind {
	case prefix:
		return e.prefix.Bits()
	case suffix:
		return len(e.name)
	}
	return 0
}

// covers tells whether the entry is about a port, and about what is said there.
// The messages of ICMP have no ports.
func (e *entry) covers(port uint16, app Protocol) bool {
	if !e.protocols.cover(app) {
		return false
	}
	return app == ICMP || e.ports == nil || slices.ContainsFunc(e.ports, func(p Ports) bool { return p.First <= port && port <= p.Last })
}

// total tells whether the entry leaves nothing of its hosts.
func (e *entry) total(veth bool) bool {
	return e.ports == nil && e.protocols.cover(TCP) && (!veth || e.protocols.cover(UDP) && e.protocols.cover(ICMP))
}

// everywhere tells whether the entry is "*", which is about names and addresses.
func (e *entry) everywhere() bool { return e.kind == everything && !e.prefix.IsValid() }

// protocols is a set of them.
type protocols int

var bits = map[Protocol]protocols{TCP: 1, TLS: 2, HTTP: 4, UDP: 8, ICMP: 16}

func setOf(list ...Protocol) (set protocols) {
	for _, p := range list {
		set |= bits[p]
	}
	return set
}

// cover tells whether the set has what a flow says: TCP is anything over TCP, and a
// flow's TCP is what shows no name.
func (s protocols) cover(app Protocol) bool {
	return s&bits[app] != 0 || (app == TLS || app == HTTP) && s&bits[TCP] != 0
}

// trusting tells whether the set has what a flow says without being shown a name.
func (s protocols) trusting(app Protocol) bool {
	if app == TLS || app == HTTP {
		app = TCP
	}
	return s&bits[app] != 0
}

func (s protocols) String() string {
	if s == setOf(TCP, TLS, HTTP, UDP, ICMP) {
		return "all protocols"
	}
	var names []string
	for _, p := range []Protocol{TCP, TLS, HTTP, UDP, ICMP} {
		if s&bits[p] != 0 {
			names = append(names, string(p))
		}
	}
	return strings.Join(names, ", ")
}
