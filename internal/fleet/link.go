package fleet

import (
	"github.com/exec-server/exec-server/internal/remote"
	"github.com/exec-server/exec-server/internal/remote/egress"
	"github.com/exec-server/exec-server/internal/remote/registry"
)

func newLink(p Plan, client *registry.Client, way *egress.Client) (Link, error) {
	log := p.Log.With().Str("environment", p.Name)
	if id := p.Settings.EnvironmentID; id != p.Name {
		log = log.Str("environment_id", id)
	}
	return remote.New(remote.Options{
		EnvironmentID: p.Settings.EnvironmentID,
		Registry:      client,
		Credential:    client.Credential,
		Dial:          way.Connect,
		Transport:     remote.Transport(p.Settings.Transport),
		Serve:         p.Serve,
		ExitOnRefusal: p.ExitOnRefusal,
		Log:           log.Logger(),
	})
}
