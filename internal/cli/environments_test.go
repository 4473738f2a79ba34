package cli

import (
	"context"
	"testing"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/fleet"
	"github.com/exec-server/exec-server/internal/gateway"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/runtime"
)

// idleSandbox is one that was left by an earlier server.
type idleSandbox struct {
	runtime.Sandbox
	name string
}

func (s idleSandbox) Spec() runtime.Spec { return runtime.Spec{Name: s.name, Profile: "default"} }

func (s idleSandbox) Counts(context.Context) (proto.Counts, error) {
	return proto.Counts{Sessions: 2}, nil
}

func (s idleSandbox) Network() runtime.Network { return nil }

func (s idleSandbox) Done() <-chan struct{} { return nil }

// What runs is said to, also if no link leads to it.
func TestAnEnvironmentWithoutALinkIsListed(t *testing.T) {
	g := gateway.New(gateway.Options{}, []runtime.Sandbox{idleSandbox{name: "box"}})
	d := &daemon{cfg: config.Default(), gateway: g, fleet: fleet.New(fleet.Options{Gateway: g})}
	list, err := d.Environments(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "box" || list[0].State != "running" || !list[0].Running || *list[0].Sessions != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if !d.known("box") {
		t.Error("what runs is not known")
	}
}

func TestURLsAreShownWithoutPasswords(t *testing.T) {
	for remote, want := range map[string]string{
		"": "", "https://r.example/base/": "https://r.example/base/", "http://u:secret@127.0.0.1:9": "http://u:xxxxx@127.0.0.1:9",
	} {
		if got := shown(remote); got != want {
			t.Errorf("%q is shown as %q", remote, got)
		}
	}
}
