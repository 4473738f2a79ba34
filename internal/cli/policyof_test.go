package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/gateway"
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
