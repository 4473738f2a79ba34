package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/fleet"
	"github.com/exec-server/exec-server/internal/gateway"
	"github.com/exec-server/exec-server/internal/metrics"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/runtime"
	"github.com/exec-server/exec-server/internal/runtime/containerd"
	"github.com/exec-server/exec-server/internal/runtime/host"
)

// daemon is everything that runs behind the transports.
type daemon struct {
	cfg     config.Config
	log     zerolog.Logger
	runtime runtime.Runtime
	images  imageFinder // nil with the host runtime
	gateway *gateway.Gateway
	control *control.Server // may be nil with the host runtime
	fleet   *fleet.Fleet    // nil if it is passing
	kept    []fleet.Entry   // of an earlier daemon

	metrics *metrics.Server // nil if there is none

	editing sync.Mutex // serialises edits of policies
}

// kind is what a daemon is for.
type kind int

const (
	server  kind = iota // of the root: it takes over what an earlier one left
	passing             // for one command: it leaves that alone
	remote              // a server with an environment of the command line
)

func controlSocket(root string) string { return stateDir(root) + "/control.sock" }

// hostSocket is the control socket of a daemon without containers, of which there
// may be others with the same root.
func hostSocket(root string) string { return stateDir(root) + "/host.sock" }

// startDaemon wires the runtime, the gateway, the fleet and the control socket.
func startDaemon(ctx context.Context, cfg config.Config, stderr io.Writer, k kind) (_ *daemon, err error) {
	log, err := newLogger(cfg.Log, stderr)
	if err != nil {
		return nil, err
	}
	d := &daemon{cfg: cfg, log: log}
	if url := cfg.Metrics.URL; url != config.NoListener && k != passing {
		if d.metrics, err = metrics.Listen(url); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				d.metrics.Close()
			}
		}()
	}
	d.warnNetwork()
	if cfg.Runtime == "host" {
		d.runtime = host.New(agent.Options{
			Detach:      cfg.Session.Detach.Duration,
			KeepClosed:  cfg.Session.KeepClosed.Duration,
			OutputBytes: int(cfg.Session.OutputBytes),
		})
	} else if d.runtime, d.images, err = openContainerd(ctx, cfg, log); err != nil {
		return nil, err
	}
	adopted, err := d.runtime.Adopt(ctx)
	if err != nil {
		return nil, errors.Join(err, d.runtime.Close())
	}
	if k == passing {
		adopted = nil
	}
	d.gateway = gateway.New(gateway.Options{
		Runtime:         d.runtime,
		Spec:            func(name string) runtime.Spec { return spec(&cfg, name, d.profile(name)) },
		Default:         cfg.Listen.EnvironmentID,
		PerSession:      cfg.Listen.Scope == "session",
		Concurrency:     cfg.Listen.ConcurrentRequests,
		MaxEnvironments: cfg.Limits.Environments,
		Log:             log,
	}, adopted)
	if err := d.openFleet(k); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	if d.metrics != nil {
		d.metrics.Serve(d.gateway.Networks)
		log.Info().Str("url", d.metrics.URL()).Msg("counters are served")
	}
	if d.control != nil {
		go d.control.Serve(ctx, d)
	}
	return d, nil
}

// warnNetwork says which policies do not do what they seem to.
func (d *daemon) warnNetwork() {
	for _, name := range slices.Sorted(maps.Keys(d.cfg.Profiles)) {
		n := d.cfg.Profiles[name].Network
		log := d.log.Warn().Str("profile", name).Str("mode", n.Mode)
		switch none := rules.Mode(n.Mode) == rules.None; {
		case d.cfg.Runtime == "host" && !none:
			log.Msg("with --runtime host commands have the network of this machine, whatever the profile says")
		case d.cfg.Runtime != "host" && none && len(n.Rules) > 0:
			log.Int("rules", len(n.Rules)).Msg(`the profile's rules do not count: they need mode = "rules" or "open"`)
		}
	}
}

// imageFinder fails if the store lacks an image.
type imageFinder func(ctx context.Context, name string) error

// checkImage fails if the image of the default profile is not there, which
// otherwise every harness would find out.
func (d *daemon) checkImage(ctx context.Context) error {
	if d.images == nil {
		return nil
	}
	name := spec(&d.cfg, "", d.cfg.DefaultProfile).Image
	err := d.images(ctx, name)
	if errdefs.IsNotFound(err) {
		return imageMissing(&d.cfg, name)
	}
	return err
}

// stop removes all environments and lets go of everything.
func (d *daemon) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if d.control != nil {
		d.control.Close()
	}
	if d.metrics != nil {
		d.metrics.Close()
	}
	var err error
	if d.fleet != nil {
		err = d.fleet.Close(ctx)
	}
	err = errors.Join(err, d.gateway.Close(ctx), d.runtime.Close())
	if d.cfg.Runtime != "host" || d.control != nil {
		removeStateDir(stateDir(d.cfg.Root))
	}
	return err
}

// ServeThrowaway implements control.Backend.
func (d *daemon) ServeThrowaway(ctx context.Context, c proto.Conn, t control.Throwaway, ready func() error) error {
	if t.Profile == "" {
		t.Profile = d.cfg.DefaultProfile
	}
	if _, ok := d.cfg.Profiles[t.Profile]; !ok {
		return fmt.Errorf("profile %q is not in the configuration", t.Profile)
	}
	s := spec(&d.cfg, "run-"+rand.Text()[:12], t.Profile)
	s.Ephemeral, s.OneClient = true, true
	if t.Network != "" && d.cfg.Runtime == "host" {
		return errors.New("there is no network policy with --runtime host: commands have the network of this machine")
	} else if t.Network != "" {
		s.Network.Mode = rules.Mode(t.Network)
	}
	if t.Image != "" {
		s.Image = imageName(t.Image)
	}
	override(&s.User, t.User)
	override(&s.Cwd, t.Cwd)
	s.Env = append(s.Env, t.Env...)
	sb, err := d.gateway.Open(ctx, s)
	if errors.Is(err, containerd.ErrImageMissing) {
		return imageMissing(&d.cfg, s.Image)
	} else if err != nil {
		return err
	}
	defer func() { _ = sb.Remove(context.WithoutCancel(ctx)) }()
	if err := ready(); err != nil {
		return err
	}
	return sb.Serve(ctx, c, proto.Hello{Peer: "exec-server run", Concurrency: 8, Extensions: true})
}
