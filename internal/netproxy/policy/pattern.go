package policy

import (
	"fmt"
	"net/netip"
	"strings"
)

// pattern is one name of a domain rule.
type pattern struct {
	glob string // in lower case, with * for any text and ? for one character
	// self: the name behind a leading "**." matches too.
	self bool
	// addr is valid if the rule names one address.
	addr netip.Addr
}

// parsePattern reads a rule's name: a host, an address, or either with the
// wildcards * and ?; "*.x" is everything below x, "**.x" is x as well. A port is
// ignored, as the reference does. The errors have its words.
func parsePattern(text string) (pattern, error) {
	s := strings.TrimSpace(text)
	rest, self := strings.CutPrefix(s, "**.")
	switch {
	case s == "":
		return pattern{}, fmt.Errorf("domain pattern is empty")
	case strings.ContainsAny(s, "{}\\/ \t\r\n\v\f"):
		return pattern{}, fmt.Errorf("unsupported domain pattern syntax: %s", s)
	case strings.Contains(rest, "**"):
		return pattern{}, fmt.Errorf("unsupported repeated wildcard: %s", s)
	case strings.ContainsAny(s, "[]"):
		inner, ok := bracketed(s)
		if !ok {
			return pattern{}, fmt.Errorf("brackets are only supported for IPv6 literals or [*]: %s", s)
		}
		rest, self = inner, false
	case strings.Count(rest, ":") == 1:
		rest, _, _ = strings.Cut(rest, ":")
	}
	p := pattern{glob: strings.ToLower(strings.TrimRight(rest, ".")), self: self}
	if p.glob == "" || p.glob == "*" && rest != "*" {
		return pattern{}, fmt.Errorf("domain pattern is empty")
	}
	if addr, err := netip.ParseAddr(p.glob); err == nil && !self {
		p.addr = addr.Unmap()
	}
	return p, nil
}

// bracketed returns what stands in the brackets of "[ADDRESS]" or "[*]", with a
// port behind it or not.
func bracketed(s string) (inner string, ok bool) {
	inner, ok = strings.CutPrefix(s, "[")
	inner, port, closed := strings.Cut(inner, "]")
	if !ok || !closed || port != "" && port[0] != ':' || strings.ContainsAny(port, "[]") {
		return "", false
	}
	if addr, err := netip.ParseAddr(inner); inner != "*" && (err != nil || !addr.Is6()) {
		return "", false
	}
	return inner, true
}

// everything says whether the pattern is a lone star.
func (p pattern) everything() bool { return p.glob == "*" && !p.self }

// exact says whether the pattern names h itself.
func (p pattern) exact(h Host) bool {
	if p.addr.IsValid() || h.addr.IsValid() {
		return p.addr == h.addr.Unmap()
	}
	return !p.self && !strings.ContainsAny(p.glob, "*?") && p.glob == h.name
}

// matches says whether the pattern covers h.
func (p pattern) matches(h Host) bool {
	switch {
	case p.addr.IsValid():
		return p.addr == h.addr.Unmap()
	case p.self:
		return glob(p.glob, h.name) || glob("*."+p.glob, h.name)
	}
	return glob(p.glob, h.name) || h.addr.Is4In6() && glob(p.glob, h.addr.Unmap().String())
}

// glob matches all of s. It takes at most len(pattern) times len(s) steps.
func glob(pattern, s string) bool {
	p, i := 0, 0
	star, mark := -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
