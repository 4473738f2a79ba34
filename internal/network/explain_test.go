package network

import (
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network/rules"
)

func TestExplain(t *testing.T) {
	r := web(t, named, "one.test")
	for target, want := range map[string]string{
		"one.test:443": "tls, http to 93.184.216.34, port 443: allowed by rule 1", "93.184.216.34:443": "",
		"1.1.1.1:443": "denied by mode rules", "[::1]:80": "denied (loopback)", "a.more.test:80": "the look-up failed: no server answers",
	} {
		lines, err := r.Explain(t.Context(), target, "")
		if err != nil || !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("%s: %q, %v, without %q", target, lines, err, want)
		}
	}
	for _, target := range []string{"", "one.test", "one.test:", "one.test:0", "one.test:65536", "one.test:https"} {
		if lines, err := r.Explain(t.Context(), target, ""); err == nil {
			t.Errorf("%q: %q", target, lines)
		}
	}
	if _, err := r.Explain(t.Context(), "one.test:443", rules.Protocol("sctp")); err == nil {
		t.Error("an unknown protocol is explained")
	}
}
