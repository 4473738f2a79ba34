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
		q, err := rules.Ask(target, "")
		if err != nil {
			t.Fatal(err)
		}
		if x := r.Explain(t.Context(), q); !strings.Contains(strings.Join(x.Lines, "\n"), want) {
			t.Errorf("%s: %q, without %q", target, x.Lines, want)
		}
	}
}

// Once the volume is used up, that is what is decided.
func TestExplainWithoutVolume(t *testing.T) {
	limited := named
	limited.Bytes = 3 << 20
	r := web(t, limited, "one.test")
	q := rules.Question{Host: "one.test", Port: 443}
	if x := r.Explain(t.Context(), q); x.Decision != "allowed" {
		t.Errorf("%+v", x)
	}
	r.budget.used.Store(limited.Bytes)
	if x := r.Explain(t.Context(), q); x.Decision != "denied" || x.Reason != rules.TooMuch || x.Lines[0] != "denied: the volume of 3MiB is used up (volume). Else:" {
		t.Errorf("%+v", x)
	}
}
