package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/transport"
)

type serveCmd struct {
	Listen             *string `placeholder:"URL" help:"ws://IP:PORT (ws://127.0.0.1:0), port 0 picks a free one; or stdio; or none."`
	EnvironmentID      *string `placeholder:"ID" help:"Name of the environment that / stands for (default); with --remote what the registry calls it."`
	ConcurrentRequests *int    `placeholder:"N" help:"Requests worked on at once on each connection (1)."`

	authFlags
	remoteFlags
	chatGPTFlags
	stockFlags
}

// mostConcurrent is what more than it comes down to: each takes a thread.
const mostConcurrent = 1024

// check finds mistakes on the command line, before anything is read.
func (s *serveCmd) check() error {
	if n := s.ConcurrentRequests; n != nil && *n < 1 {
		return usageError("--concurrent-requests must be at least 1")
	}
	if err := s.authFlags.check(); err != nil {
		return err
	}
	if err := s.stockFlags.check(); err != nil {
		return err
	}
	return s.remoteFlags.check(s.chatGPTFlags, s.EnvironmentID != nil, s.Listen != nil)
}

func (s *serveCmd) apply(cfg *config.Config) error {
	if s.Listen != nil {
		cfg.Listen.URL = *s.Listen
	}
	if s.Remote == nil {
		override(&cfg.Listen.EnvironmentID, value(s.EnvironmentID))
	}
	if n := s.ConcurrentRequests; n != nil {
		cfg.Listen.ConcurrentRequests = min(*n, mostConcurrent)
	}
	if !transport.ValidEnvironment(cfg.Listen.EnvironmentID) {
		return fmt.Errorf("environment id %q: 1 to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or a digit", cfg.Listen.EnvironmentID)
	}
	return nil
}

// Run serves until SIGTERM, SIGINT or SIGHUP.
func (s *serveCmd) Run(ctx context.Context, common *Common, std Streams) error {
	if err := s.check(); err != nil {
		return err
	}
	cfg, err := common.load()
	if err != nil {
		return err
	}
	if err := s.apply(&cfg); err != nil {
		return err
	}
	if err := s.offered(); err != nil {
		return err
	}
	s.warn(std.Err)
	ctx, stop := untilSignal(ctx)
	defer stop()
	// Whoever reads our output may go before us. The signal is caught and dropped,
	// not ignored, which commands would inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if s.Remote != nil {
		return s.serveRemote(ctx, cfg, std)
	}
	settings := s.settings(cfg.Listen.Auth)
	if err := settings.Check(); err != nil {
		return err
	}
	if transport.IsStdio(cfg.Listen.URL) {
		if settings.Mode != "" {
			return errors.New("WebSocket auth requires a WebSocket listener, not stdio")
		}
		return serveStdio(ctx, cfg, std)
	}
	if cfg.Listen.URL == config.NoListener {
		if settings.Mode != "" {
			return errors.New("WebSocket auth requires a WebSocket listener, and there is none")
		}
		return serveNone(ctx, cfg, std)
	}
	addr, err := transport.ParseListen(cfg.Listen.URL)
	if err != nil {
		return err
	}
	guard, err := settings.Open()
	if err != nil {
		return err
	}
	l, err := transport.Listen(addr, guard)
	if err != nil {
		return err
	}
	d, err := startDaemon(ctx, cfg, std.Err, server)
	if err != nil {
		l.Close()
		return ended(ctx, err)
	}
	if err := d.checkImage(ctx); err != nil {
		l.Close()
		return errors.Join(err, d.stop())
	}
	d.startFleet(ctx)
	d.announce(l.URL())
	if guard == nil && !addr.Addr().IsLoopback() {
		fmt.Fprintf(std.Err, "exec-server: everybody who reaches %s may run commands: there is no --ws-auth\n", addr)
	}
	fmt.Fprintln(std.Out, l.URL())
	served := make(chan error, 1)
	go func() { served <- l.Serve(ctx, d.gateway.Serve) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		err = nil
		stop() // a second signal ends the process at once
	}
	l.Close()
	return errors.Join(err, d.stop())
}

// ended turns an error that comes from being told to stop into none.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func serveStdio(ctx context.Context, cfg config.Config, std Streams) error {
	d, err := startDaemon(ctx, cfg, std.Err, server)
	if err != nil {
		return ended(ctx, err)
	}
	d.startFleet(ctx)
	d.announce("stdio")
	c := transport.Stdio(std.In, std.Out, std.In)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.gateway.Serve(ctx, c, "", proto.StdioPeer)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	_ = c.Close()
	return d.stop()
}

// stopTimeout bounds how long the daemon takes to remove its environments.
const stopTimeout = 30 * time.Second
