package fleet

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote"
	"github.com/exec-server/exec-server/internal/remote/credential"
	"github.com/exec-server/exec-server/internal/remote/egress"
	"github.com/exec-server/exec-server/internal/remote/registry"
)

// Link is the way out of one environment.
type Link interface {
	// Run keeps the environment reachable until ctx ends, the owner of its
	// credential leaves (nil), or it is refused and was to end then.
	Run(ctx context.Context) error
	Status() remote.Status
}

// Plan is what a link is made from.
type Plan struct {
	Name          string
	Settings      config.Environment // complete
	Source        credential.Source  // nil: what the settings name
	ExitOnRefusal bool
	// Serve serves one connection until it ends.
	Serve func(ctx context.Context, c proto.Conn, hello proto.Hello)
	Log   zerolog.Logger
}

// Connect makes a link with everything that it alone uses. It may look for
// credentials of the machine, and does not ask the registry.
func Connect(ctx context.Context, p Plan) (link Link, err error) {
	e := p.Settings
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		if err != nil {
			cancel() // nobody watches the credential
		}
	}()
	source := p.Source
	if source == nil {
		if source, err = Source(ctx, e); err != nil {
			return nil, err
		}
	}
	way, err := egress.New(egress.Options{ProxyURL: e.Proxy, NoProxy: e.NoProxy, CAFile: e.CAFile})
	if err != nil {
		return nil, err
	}
	client := &registry.Client{Base: e.Remote, EnvironmentID: e.EnvironmentID, Credential: source, HTTP: way.HTTP()}
	if err := client.Check(); err != nil {
		return nil, err
	}
	return newLink(p, client, way)
}

// Source is the credential that settings name. It is watched until ctx ends.
func Source(ctx context.Context, e config.Environment) (credential.Source, error) {
	switch {
	case e.Transport == config.Direct:
		return credential.SigV4(ctx, credential.AWS{Profile: e.AWSProfile, Region: e.AWSRegion, Service: e.AWSService})
	case e.KeyFile != "":
		return credential.File(ctx, e.KeyFile), nil
	case e.KeyEnv != "":
		return credential.Env(e.KeyEnv)
	}
	return credential.Command(e.KeyCommand)
}
