package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/agentbin"
	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/doctor"
	"github.com/exec-server/exec-server/internal/image"
	"github.com/exec-server/exec-server/internal/network/names"
	"github.com/exec-server/exec-server/internal/runtime/containerd"
)

// defaultImage is the name of the image of profiles that name none.
func defaultImage() string { return image.Default().Name() }

// openContainerd brings up the containerd runtime, with the containerd inside
// or the one that the configuration names.
func openContainerd(ctx context.Context, cfg config.Config, log zerolog.Logger) (*containerd.Runtime, imageFinder, error) {
	if err := doctor.Preflight(cfg.Root, cfg.Containerd.Runc); err != nil {
		return nil, nil, err
	}
	agent, err := agentbin.Agent()
	if err != nil {
		return nil, nil, err
	}
	helper, err := agentbin.Helper()
	if err != nil {
		return nil, nil, err
	}
	opts := containerd.Options{
		Root: cfg.Root, State: stateDir(cfg.Root), RuncPath: cfg.Containerd.Runc, AgentBinary: agent, HelperBinary: helper, Log: log,
		VEthV4: cfg.Network.V4(), VEthV6: cfg.Network.V6(),
	}
	if opts.Upstream, err = names.NewUpstream(cfg.Network.Resolvers); err != nil {
		return nil, nil, err
	}
	if err := makeStateDir(opts.State); err != nil {
		return nil, nil, err
	}
	cl := opts.Client
	if address := cfg.Containerd.Address; address != "" {
		opts.Client, err = containerd.Connect(ctx, address, "")
		cl = opts.Client
	} else if opts.Server, err = startServer(ctx, cfg, log); err == nil {
		cl = opts.Server.Client()
	}
	if err != nil {
		removeStateDir(opts.State)
		return nil, nil, err
	}
	r, err := containerd.New(opts)
	if err != nil && opts.Server != nil {
		opts.Server.Stop()
		removeStateDir(opts.State)
	}
	return r, func(ctx context.Context, name string) error {
		_, err := image.Find(namespaces.WithNamespace(ctx, containerd.DefaultNamespace), cl, name)
		return err
	}, err
}

func startServer(ctx context.Context, cfg config.Config, log zerolog.Logger) (*containerd.Server, error) {
	s, err := containerd.Start(ctx, containerd.ServerOptions{
		Root: filepath.Join(cfg.Root, "containerd"), State: stateDir(cfg.Root), RuncPath: cfg.Containerd.Runc,
		Debug: cfg.Log.Level == "debug", Log: log,
	})
	if errors.Is(err, containerd.ErrInUse) {
		return nil, fmt.Errorf("another exec-server runs with root %s; use another --root or stop it", cfg.Root)
	}
	return s, err
}

// makeStateDir makes a directory that user namespaces can look through.
func makeStateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	return nil
}

// removeStateDir removes what makeStateDir made, if it is not in use.
func removeStateDir(dir string) {
	_ = os.Remove(dir)
	_ = os.Remove(filepath.Dir(dir))
}

// store opens the image store: that of a running daemon or containerd, or else
// the one on disk.
func (c *Common) store(ctx context.Context, std Streams) (context.Context, *client.Client, func(), error) {
	cfg, err := c.load()
	if err != nil {
		return ctx, nil, nil, err
	}
	ctx = namespaces.WithNamespace(ctx, containerd.DefaultNamespace)
	containerd.Quiet()
	address := cfg.Containerd.Address
	running := filepath.Join(stateDir(cfg.Root), "containerd.sock")
	if _, err := os.Stat(running); err == nil && address == "" {
		if cl, err := containerd.Connect(ctx, running, ""); err == nil {
			return ctx, cl, func() { _ = cl.Close() }, nil
		} // else it is a dead daemon's
	}
	if address != "" {
		cl, err := containerd.Connect(ctx, address, "")
		return ctx, cl, func() { _ = cl.Close() }, err
	}
	if err := doctor.Preflight(cfg.Root, cfg.Containerd.Runc); err != nil {
		return ctx, nil, nil, err
	}
	log, err := newLogger(config.Log{Level: "warn", Format: cfg.Log.Format}, std.Err)
	if err != nil {
		return ctx, nil, nil, err
	}
	if err := makeStateDir(stateDir(cfg.Root)); err != nil {
		return ctx, nil, nil, err
	}
	s, err := startServer(ctx, cfg, log)
	if err != nil {
		removeStateDir(stateDir(cfg.Root))
		return ctx, nil, nil, err
	}
	return ctx, s.Client(), func() {
		s.Stop()
		removeStateDir(stateDir(cfg.Root))
	}, nil
}
