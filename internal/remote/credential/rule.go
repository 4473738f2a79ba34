package credential

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
)

// The words are the reference's, but for what comes after the semicolon.
var (
	errAPIKeyHost = errors.New("remote exec-server API-key authentication is restricted to HTTPS openai.com and openai.org hosts and subdomains or loopback hosts; use --registration-bearer-stdin for another registry")
	errNotHTTPS   = errors.New("environment registry configuration error: remote transport requires https for non-loopback endpoints")
)

// IsLoopback tells whether a host, without port and brackets, is this machine by
// its name alone: localhost, or a loopback address.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func web(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// apiKeyRule keeps the keys of OpenAI with OpenAI.
func apiKeyRule(base *url.URL) error {
	host := strings.ToLower(strings.TrimSuffix(base.Hostname(), "."))
	if web(base) && IsLoopback(host) {
		return nil
	}
	if base.Scheme == "https" {
		for _, domain := range []string{"openai.com", "openai.org"} {
			if host == domain || strings.HasSuffix(host, "."+domain) {
				return nil
			}
		}
	}
	return errAPIKeyHost
}

// secureRule lets tokens over networks with TLS only.
func secureRule(base *url.URL) error {
	if base.Scheme == "https" || base.Scheme == "http" && IsLoopback(base.Hostname()) {
		return nil
	}
	return errNotHTTPS
}
