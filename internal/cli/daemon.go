package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/gateway"
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
	control *control.Server // nil with the host runtime
}

func controlSocket(root string) string { return stateDir(root) + "/control.sock" }

// startDaemon wires the runtime, the gateway and the control socket. A server of
// the root takes over what an earlier one left running; a passing one leaves that
// alone.
func startDaemon(ctx context.Context, cfg config.Config, stderr io.Writer, passing bool) (*daemon, error) {
	log, err := newLogger(cfg.Log, stderr)
	if err != nil {
		return nil, err
	}
	d := &daemon{cfg: cfg, log: log}
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
	if passing {
		adopted = nil
	}
	d.gateway = gateway.New(gateway.Options{
		Runtime:         d.runtime,
		Spec:            func(name string) runtime.Spec { return spec(&cfg, name, cfg.DefaultProfile) },
		Default:         cfg.Listen.EnvironmentID,
		PerSession:      cfg.Listen.Scope == "session",
		Concurrency:     cfg.Listen.ConcurrentRequests,
		MaxEnvironments: cfg.Limits.Environments,
		Log:             log,
	}, adopted)
	if cfg.Runtime != "host" {
		if d.control, err = control.Listen(controlSocket(cfg.Root)); err != nil {
			return nil, errors.Join(err, d.stop())
		}
		go d.control.Serve(ctx, d)
	}
	return d, nil
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
	err := errors.Join(d.gateway.Close(ctx), d.runtime.Close())
	if d.cfg.Runtime != "host" {
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
