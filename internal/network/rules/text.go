package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Parse reads a rule as it stands on a command line: HOST[:PORTS][/PROTOCOLS], as
// in "pypi.org", "*.example.org:443,8000-8100/tls", "10.1.0.0/16:22" and
// "fd00::/8:22/tcp". It checks what Compile does but for what needs the policy. Errors
// do not repeat the text.
func Parse(text string, denies bool) (Rule, error) {
	var r Rule
	host := text
	if strings.Contains(text, "://") {
		return Rule{}, errors.New("it is a URL; write the name in it alone")
	}
	if i := strings.LastIndexByte(host, '/'); i >= 0 && i+1 < len(host) && host[i+1] >= 'a' && host[i+1] <= 'z' {
		for p := range strings.SplitSeq(host[i+1:], ",") {
			r.Protocols = append(r.Protocols, Protocol(p))
		}
		host = host[:i]
	}
	host, ports, hasPorts := cutPorts(host)
	if hasPorts {
		for p := range strings.SplitSeq(ports, ",") {
			parsed, err := ParsePorts(p)
			if err != nil {
				return Rule{}, err
			}
			r.Ports = append(r.Ports, parsed)
		}
	}
	if r.Allow = []string{host}; denies {
		r.Allow, r.Deny = nil, r.Allow
	}
	if _, err := r.entries(true, true); err != nil {
		return Rule{}, errors.New(strings.TrimPrefix(err.Text, strconv.Quote(text)+": "))
	}
	return r, nil
}

// cutPorts takes the ports from a host. An IPv6 address that has them is in
// brackets, with or without the length of its prefix, or has such a length.
func cutPorts(s string) (host, ports string, ok bool) {
	if inner, bracket := strings.CutPrefix(s, "["); bracket {
		addr, rest, closed := strings.Cut(inner, "]")
		length, ports, ok := strings.Cut(rest, ":")
		if !closed || !strings.Contains(addr, ":") || length != "" && length[0] != '/' {
			return s, "", false
		}
		return addr + length, ports, ok
	}
	start := max(0, strings.IndexByte(s, '/'))
	if i := strings.IndexByte(s[start:], ':'); i >= 0 && strings.Count(s[start:], ":") == 1 {
		return s[:start+i], s[start+i+1:], true
	}
	return s, "", false
}

// Words are what Parse reads to make such a rule, one for each of its hosts; what
// they cannot say is its credential.
func (r Rule) Words() []string {
	var tail string
	if len(r.Ports) > 0 {
		tail = ":" + join(r.Ports, ",")
	}
	if len(r.Protocols) > 0 {
		tail += "/" + join(r.Protocols, ",")
	}
	words := append(append([]string{}, r.Allow...), r.Deny...)
	for i, w := range words {
		if strings.Contains(w, ":") && len(r.Ports) > 0 {
			w = "[" + w + "]"
		}
		words[i] = w + tail
	}
	return words
}

// String is the rule in one line. It shows where a secret is, and none.
func (r Rule) String() string {
	verb := "allow "
	if len(r.Deny) > 0 {
		verb = "deny "
	}
	return verb + strings.Join(r.Words(), " ") + r.Credential.text()
}

// join is the list's texts in one.
func join[T Ports | Protocol | netip.Addr](list []T, sep string) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, sep)
}
