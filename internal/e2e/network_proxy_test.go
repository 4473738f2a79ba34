package e2e

import (
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/network/testnet"
)

// A proxy that a harness asks for is one more policy: what passes has been allowed by
// both.
func TestTheProxyOfACommandIsNoWiderThanThePolicy(t *testing.T) {
	n, config := newInternet(t)
	n.DNS.Set("third.example", time.Minute, testnet.Web.String())
	r := newRoot(t, config+profile+"[profile.default.network]\nmode = \"rules\"\n[[profile.default.network.rule]]\nallow = [\"web.example\", \"third.example\"]\n")
	h := r.serveIn(n).connect("/", "")
	get := func(url string, more map[string]any) string {
		t.Helper()
		params := map[string]any{"networkProxy": map[string]any{"proxy": map[string]any{
			"enabled": true, "enableSocks5": true, "enableSocks5Udp": false, "allowUpstreamProxy": false, "dangerouslyAllowAllUnixSockets": false,
			"mode": "full", "allowLocalBinding": false,
			"domains": map[string]string{"web.example": "allow", "other.example": "allow", testnet.Other.String(): "allow"},
		}}}
		for key, value := range more {
			params[key] = value
		}
		out, _ := h.finish(params, "visit "+url)
		return out
	}
	for name, more := range map[string]map[string]any{
		"free":     {},
		"confined": {"sandbox": sandboxOf("root=read"), "enforceManagedNetwork": true},
	} {
		for url, want := range map[string]string{
			"http://web.example/":                    "web.example",                  // by both
			"http://third.example/":                  `"reason":"not_allowed"`,       // not by the proxy
			"http://other.example/":                  `"reason":"not_allowed_local"`, // not by the environment, so that it has no address
			"http://" + testnet.Other.String() + "/": "upstream failure",             // not by the environment
		} {
			expect(t, name+", "+url, get(url, more), want)
		}
	}
	if n.DNS.Count("other.example") > 0 {
		t.Errorf("the name server was asked %v", n.DNS.Queries())
	}
}
