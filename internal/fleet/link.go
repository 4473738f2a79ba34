package fleet

import (
	"github.com/exec-server/exec-server/internal/remote"
	"github.com/exec-server/exec-server/internal/remote/egress"
	"github.com/exec-server/exec-server/internal/remote/registry"
)

func newLink(p Plan, client *registry.Client, way *egress.Client) (Link, error) {
	return remote.New(remote.Options{
		EnvironmentID: p.Settings.EnvironmentID,
		Registry:      client,
		Credential:    client.Credential,
		Dial:          way.Connect,
		Transport:     remote.Transport(p.Settings.Transport),
		Serve:         p.Serve,
		ExitOnRefusal: p.ExitOnRefusal,
		Log:           p.Log.With().Str("environment", p.Name).Logger(),
	})
}
