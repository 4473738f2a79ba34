package control

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/exec-server/exec-server/internal/network/rules"
)

func TestPoliciesOverTheSocket(t *testing.T) {
	b := newBackend()
	_, path := serveOn(t, b)
	ctx := context.Background()
	if p, err := GetPolicy(ctx, path, "a"); err != nil || p.Name != "a" || !p.Running || p.Policy.Mode != rules.None {
		t.Errorf("%+v, %v", p, err)
	}
	edit := EditPolicy{
		Name: "a", Reset: true, Whole: &rules.Policy{Mode: rules.Open, Limits: rules.Limits{Bytes: 5}}, Remove: []int{0, 2}, Mode: rules.Rules, Close: true,
		Bandwidth: new(int64(0)), Volume: new(int64(1 << 40)), Connections: new(0), ConnectionRate: new(3),
		Add: []rules.Rule{{Allow: []string{"x"}, Ports: []rules.Ports{{First: 1, Last: 2}}, Credential: &rules.Credential{SecretFile: "/f"}}},
	}
	p, err := SetPolicy(ctx, path, edit)
	if got := <-b.edits; err != nil || !reflect.DeepEqual(got, edit) || !reflect.DeepEqual(p.Policy.Rules, edit.Add) {
		t.Errorf("%+v is asked for, and gives %+v, %v", got, p, err)
	}
	if e, err := Explain(ctx, path, ExplainPolicy{"a", "h:1", rules.TLS}); err != nil || !reflect.DeepEqual(e, Explained{"p", true, true, rules.Explanation{Lines: []string{"a", "h:1", "tls"}}}) {
		t.Errorf("%+v, %v", e, err)
	}
	b.refusal = errors.New("rule 1: ports: no")
	if _, err := SetPolicy(ctx, path, edit); err == nil || err.Error() != b.refusal.Error() {
		t.Errorf("the refusal is %v", err)
	}
}
