package network

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network/rules"
)

func TestExplain(t *testing.T) {
	r := web(t, named, "one.test")
	for target, want := range map[string]string{
		"one.test:443": "tls, http to 93.184.216.34, port 443: allowed by rule 1", "93.184.216.34:443": "",
		"1.1.1.1:443": "denied by mode rules", "[::1]:80": "allowed: ::1 is the environment's own loopback", "a.more.test:80": "the look-up failed: no server answers",
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

// What an environment has within itself needs no way out, and a name whose addresses are
// taken out has none.
func TestExplainWhatIsNotReached(t *testing.T) {
	r := web(t, named, "one.test")
	r.pins["a.more.test"] = []netip.Addr{}
	r.removed = map[string][]netip.Addr{"a.more.test": {netip.MustParseAddr("10.20.0.6")}}
	explain := func(host string) rules.Explanation {
		return r.Explain(t.Context(), rules.Question{Host: host, Port: 80})
	}
	if x := explain("a.more.test"); x.Decision != "denied" || x.Reason != rules.Rebound || !slices.Contains(x.Lines, "answer 10.20.0.6: left out, it is private (10.0.0.0/8) (rebind)") {
		t.Errorf("%+v", x)
	}
	for _, p := range []rules.Policy{named, {Mode: rules.None}, {Mode: rules.Open, Limits: rules.Limits{Bytes: 1}}} {
		if err := r.Set(p, false); err != nil {
			t.Fatal(err)
		}
		r.budget.used.Store(1)
		for _, host := range []string{"localhost", "App.Localhost.", "127.0.0.1", "127.9.9.9", "[::1]", "::ffff:127.0.0.1", "0.0.0.0"} {
			if x := explain(host); x.Decision != "allowed" || x.Reason != rules.Local || len(x.Lines) != 1 {
				t.Errorf("%s, %s: %+v", p.Mode, host, x)
			}
		}
		for _, host := range []string{"localhost.test", "128.0.0.1", "::2"} {
			if x := explain(host); x.Reason == rules.Local {
				t.Errorf("%s: %+v", host, x)
			}
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
