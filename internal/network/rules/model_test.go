package rules

import (
	"net/netip"
	"slices"
	"strings"
)

// written is the table of docs/network.md as it stands there, for one entry after
// the other: the key that orders them, and whether it is about the flow at all.
func written(p Policy, f Flow, s Said) (Verdict, int) {
	type row struct {
		key  [7]int
		deny bool
		rule int
		of   []string // the names of the address that it counts for
	}
	truth := func(b bool) int {
		if b {
			return 0
		}
		return 1
	}
	var rows []row
	opened := f.Addr.String() != "10.1.1.1" && !slices.Contains(someAddrs[4:], f.Addr.String()) || f.Addr.String() == "2600::1"
	opened = opened && !f.Own
	for i, r := range p.Rules {
		denies := r.Deny != nil
		for _, host := range append(slices.Clone(r.Allow), r.Deny...) {
			address := strings.ContainsAny(host, ":/") || host[0] == '1' || host == "*"
			ports, protocols := r.Ports, r.Protocols
			if ports == nil && !denies && !address {
				ports = []Ports{{80, 80}, {443, 443}}
			}
			if protocols == nil {
				switch {
				case denies:
					protocols = []Protocol{TCP, UDP}
				case r.Credential != nil:
					protocols = []Protocol{TLS}
				case address:
					protocols = []Protocol{TCP}
				default:
					protocols = []Protocol{TLS, HTTP}
				}
			}
			anyTCP := slices.Contains(protocols, TCP)
			if !slices.Contains(protocols, s.App) && !(anyTCP && s.App != UDP) {
				continue
			}
			if ports != nil && !slices.ContainsFunc(ports, func(p Ports) bool { return p.First <= f.Port && f.Port <= p.Last }) {
				continue
			}
			var level, length int
			var names []string
			switch {
			case host == "*":
				level = 5
			case address:
				prefix, err := netip.ParsePrefix(host)
				if err != nil {
					a := netip.MustParseAddr(host)
					prefix = netip.PrefixFrom(a, a.BitLen())
				}
				if !prefix.Contains(f.Addr) {
					continue
				}
				if level, length = 3, prefix.Bits(); length == 0 {
					level = 5
				}
				if !denies && length > 0 && opens(f, prefix) {
					opened = true
				}
			default:
				is := func(name string) bool { return name == host }
				if level = 2; host[0] == '*' {
					level, length = 4, len(host)
					is = func(name string) bool { return strings.HasSuffix(name, host[1:]) }
				}
				said := s.App != TCP && s.App != UDP && s.Name != "" && is(s.Name)
				trusted := anyTCP && s.App != UDP || s.App == UDP && slices.Contains(protocols, UDP)
				if denies || trusted {
					names = slices.DeleteFunc(slices.Clone(f.Names), func(n string) bool { return !is(n) })
				}
				if !(said && (denies || s.Pinned && !s.Hidden)) && len(names) == 0 {
					continue
				} else if said && (denies || s.Pinned && !s.Hidden) {
					names = nil
				}
			}
			rows = append(rows, row{[7]int{level, -length, truth(r.Ports != nil), truth(r.Protocols != nil), truth(denies), i}, denies, i, names})
		}
	}
	first := func(rows []row) row {
		return slices.MinFunc(rows, func(a, b row) int { return slices.Compare(a.key[:], b.key[:]) })
	}
	// Who says a name is not held to what is denied about the others of its address,
	// and gains nothing by them either.
	count := slices.DeleteFunc(slices.Clone(rows), func(r row) bool {
		return len(r.of) > 0 && !slices.ContainsFunc(r.of, func(name string) bool {
			about := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !slices.Contains(r.of, name) })
			best := first(about)
			return best.key == r.key && (!best.deny || s.Name == "" || s.App == TCP || s.App == UDP)
		})
	})
	rows = count
	if !opened {
		return Deny, -1
	}
	if len(rows) == 0 {
		if p.Mode == Open {
			return Allow, -1
		}
		return Deny, -1
	}
	if best := first(rows); best.deny {
		return Deny, best.rule
	}
	return Allow, first(rows).rule
}

// opens tells by hand which prefixes open the special addresses of someAddrs.
func opens(f Flow, p netip.Prefix) bool {
	switch f.Addr.String() {
	case "169.254.169.254", "100.100.100.200", "fd00:ec2::254":
		return p.IsSingleIP()
	case "127.0.0.1":
		return p.Bits() >= 8
	case "::1":
		return p.Bits() >= 128
	}
	if f.Own {
		return p.IsSingleIP()
	}
	switch f.Addr.String() {
	case "10.1.1.1", "10.2.1.1":
		return p.Bits() >= 8
	case "169.254.1.1":
		return p.Bits() >= 16
	}
	return f.Addr.Is6() && p.Bits() >= 7
}
