package e2e

import (
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network/testnet"
)

// A command's own proxy, whatever it is told to allow, gets no farther than the policy.
func TestEscapeByAManagedProxy(t *testing.T) {
	n, _, _, h := saying(t)
	came := hostServices(t, n, "7777")
	packets := n.Capture(t)
	targets := []string{"http://web.example/", "http://other.example/", "http://151.101.0.223/", "http://169.254.169.254/", "http://10.99.0.2:7777/", "http://84.32.10.2:7777/", "http://metadata.suffix.example/", "http://[fd00:ec2::254]/"}
	domains := map[string]string{}
	for _, url := range targets {
		host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
		if i := strings.LastIndex(host, ":"); i > 0 && !strings.HasSuffix(host, "]") {
			host = host[:i]
		}
		domains[strings.Trim(host, "[]")] = "allow"
	}
	for name, more := range map[string]map[string]any{
		"free":     {},
		"confined": {"sandbox": sandboxOf("root=read"), "enforceManagedNetwork": true},
	} {
		for _, url := range targets {
			params := map[string]any{"networkProxy": map[string]any{"proxy": map[string]any{
				"enabled": true, "enableSocks5": true, "enableSocks5Udp": true, "allowUpstreamProxy": true, "dangerouslyAllowAllUnixSockets": true,
				"mode": "full", "allowLocalBinding": true, "domains": domains,
			}}}
			for k, v := range more {
				params[k] = v
			}
			out, code := h.finish(params, "test -n \"$HTTP_PROXY\" && /bin/escape get '"+url+"' 2>&1")
			if ok := strings.Contains(out, `"Host":"web.example"`); code != 0 || ok != (url == targets[0]) {
				t.Errorf("%s, %s: exit %d: %s", name, url, code, out)
			}
		}
	}
	nothingLeft(t, packets, testnet.Web)
	if came.Load() > 0 {
		t.Errorf("the host was reached %d times", came.Load())
	}
}
