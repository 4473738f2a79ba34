package httpclient

import (
	"net/netip"
	"strings"
)

// proxies are what the server's environment says about proxies.
type proxies struct {
	http, https *target
	except      []string
}

func proxiesOf(getenv func(string) string) *proxies {
	first := func(names ...string) string {
		for _, name := range names {
			if v := getenv(name); v != "" {
				return v
			}
		}
		return ""
	}
	parse := func(text string) *target {
		if text == "" {
			return nil
		}
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		t, err := parseTarget(text)
		if err != nil || t.host == "" {
			return nil
		}
		return t
	}
	all := first("ALL_PROXY", "all_proxy")
	or := func(v string) string {
		if v == "" {
			return all
		}
		return v
	}
	p := &proxies{https: parse(or(first("HTTPS_PROXY", "https_proxy")))}
	// In a CGI program HTTP_PROXY is what a request's Proxy header says.
	if getenv("REQUEST_METHOD") == "" {
		p.http = parse(or(first("HTTP_PROXY", "http_proxy")))
	} else {
		p.http = parse(all)
	}
	for entry := range strings.SplitSeq(first("NO_PROXY", "no_proxy"), ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			p.except = append(p.except, lower(entry))
		}
	}
	return p
}

// choose returns the proxy for a target, or nil.
func (p *proxies) choose(t *target) *target {
	proxy := p.http
	if t.scheme == "https" {
		proxy = p.https
	}
	if proxy == nil || p.excepted(t.name()) {
		return nil
	}
	return proxy
}

// excepted looks a host up in NO_PROXY: addresses and networks for addresses,
// domains with all below them, and the star, for names.
func (p *proxies) excepted(host string) bool {
	addr, err := netip.ParseAddr(host)
	for _, entry := range p.except {
		if err == nil {
			if network, err := netip.ParsePrefix(entry); err == nil && network.Contains(addr) {
				return true
			}
			if one, err := netip.ParseAddr(entry); err == nil && one == addr {
				return true
			}
			continue
		}
		domain := strings.TrimPrefix(entry, ".")
		if entry == "*" || host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}
