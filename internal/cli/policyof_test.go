package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/gateway"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// A name that is mistyped is no error, since any name may be connected to, but is said
// to be none that there is.
func TestThePolicyOfAnEnvironmentThatNobodyMade(t *testing.T) {
	d := &daemon{cfg: config.Default(), gateway: gateway.New(gateway.Options{}, nil)}
	d.cfg.Root = t.TempDir()
	d.cfg.Environments = map[string]config.Environment{"configured": {}}
	if err := os.MkdirAll(filepath.Join(d.cfg.Root, "environments", "former"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, known := range map[string]bool{"default": true, "configured": true, "former": true, "nope": false} {
		p, err := d.Policy(t.Context(), name)
		if err != nil || p.Known != known || p.Running || p.Profile != "default" || p.Policy.Mode != "none" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		e, err := d.ExplainPolicy(t.Context(), control.ExplainPolicy{Name: name, Target: "a.example:443"})
		if err != nil || e.Known != known || e.Running || e.Profile != "default" || e.Decision != "denied" || e.Reason != "mode" {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		want := name + " is not running"
		if !known {
			want = "there is no environment " + name + " yet"
		}
		if _, err := d.EditPolicy(t.Context(), control.EditPolicy{Name: name}); err == nil || !strings.HasPrefix(err.Error(), "nothing has changed: "+want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.ExplainPolicy(t.Context(), control.ExplainPolicy{Name: "default", Target: "a.example"}); err == nil {
		t.Error("what is no question is answered")
	}
	if _, err := d.Policy(t.Context(), "../x"); err == nil {
		t.Error("what is no name has a policy")
	}
}

// Rules that do nothing are not passed over in silence.
func TestRulesThatDoNotCount(t *testing.T) {
	for mode, says := range map[string]string{"none": `"profile":"a","mode":"none","rules":1,"message":"the profile's rules do not count`, "rules": ""} {
		var out strings.Builder
		d := &daemon{cfg: config.Default(), log: zerolog.New(&out)}
		d.cfg.Profiles["a"] = config.Profile{Network: config.ProfileNetwork{Mode: mode, Rules: []config.Rule{{Allow: []string{"a.example"}}}}}
		d.warnNetwork()
		if !strings.Contains(out.String(), says) || says == "" && out.Len() > 0 {
			t.Errorf("with mode %s the log is %q", mode, out.String())
		}
	}
	allow, deny := rules.Rule{Allow: []string{"10.20.0.5"}, Ports: []rules.Ports{{First: 5432, Last: 5432}}}, rules.Rule{Deny: []string{"10.20.0.5"}}
	for _, c := range []struct {
		mode  rules.Mode
		rules []rules.Rule
		from  int
		says  string
	}{
		{rules.None, []rules.Rule{allow}, 0, "with mode none no rule counts"},
		{rules.None, []rules.Rule{allow}, 1, ""},
		{rules.Rules, []rules.Rule{allow, deny}, 1, "rule 2 does not deny what rule 1 allows"},
		{rules.Rules, []rules.Rule{allow, deny}, 2, ""},
		{rules.Rules, []rules.Rule{allow}, 0, ""},
	} {
		notes := strings.Join(idle(rules.Policy{Mode: c.mode, Rules: c.rules}, c.from), "\n")
		if !strings.HasPrefix(notes, c.says) || c.says == "" && notes != "" {
			t.Errorf("%+v: %q", c, notes)
		}
	}
	many := append(slices.Repeat([]rules.Rule{allow}, mostIdle+2), deny)
	if notes := idle(rules.Policy{Mode: rules.Rules, Rules: many}, mostIdle+2); len(notes) != mostIdle+1 || notes[mostIdle] != "and 2 more such rules" {
		t.Errorf("%q", notes)
	}
}
