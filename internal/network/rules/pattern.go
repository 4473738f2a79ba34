package rules

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/exec-server/exec-server/internal/address"
)

// parse reads what a rule may allow or deny into the entry.
func (e *entry) parse(s string) (problem string) {
	e.what = s
	switch {
	case s == "*":
		e.kind = everything
		return ""
	case strings.Contains(s, "://"):
		return "it is a URL; write the name in it alone"
	case strings.HasPrefix(s, "*."):
		e.kind = suffix
		return e.parseName(s, s[2:])
	case strings.Contains(s, "*"):
		return `"*" can only stand alone, or as "*." before a name`
	case strings.ContainsAny(s, "/:") || isAddr(s):
		return e.parsePrefix(s)
	}
	e.kind = exact
	return e.parseName(s, s)
}

func isAddr(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func (e *entry) parseName(whole, name string) string {
	for i := range len(name) {
		if name[i] >= 0x80 {
			return "the letters of other languages stand in it as the domain system has them, in a name that begins with xn--"
		}
	}
	clean, ok := address.Name(name)
	if !ok {
		return `it is none of a name, "*.name", "*", an address and a prefix such as "10.1.0.0/16"`
	}
	e.name = clean
	e.what = whole[:len(whole)-len(name)] + clean
	return ""
}

func (e *entry) parsePrefix(s string) string {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return noPrefix(s)
		}
		if a.Zone() != "" {
			return "an address with a zone is of no use here"
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	if a := p.Addr(); a.Is4In6() {
		if p.Bits() < 96 {
			return "write it as a prefix of IPv4"
		}
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	if p != p.Masked() {
		return "it has bits beyond its length; was " + p.Masked().String() + " meant?"
	}
	e.kind, e.prefix = prefix, p
	if p.Bits() == 0 {
		e.kind = everything
	}
	if e.what = p.String(); p.IsSingleIP() {
		e.what = p.Addr().String()
	}
	return ""
}

// noPrefix says why a text is neither an address nor a prefix.
func noPrefix(s string) string {
	addr, length, _ := strings.Cut(s, "/")
	switch a, err := netip.ParseAddr(addr); {
	case err == nil && a.Zone() == "":
		return fmt.Sprintf("the length of its prefix, %q, is not from 0 to %d", length, a.BitLen())
	case strings.Count(s, ":") == 1:
		return "ports stand in a key of their own, ports"
	}
	return "it is neither an address nor a prefix"
}
