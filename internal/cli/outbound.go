package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/exec-server/exec-server/internal/auth"
	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/fleet"
	"github.com/exec-server/exec-server/internal/transport"
)

// serveRemote serves through a registry, as the reference does with --remote:
// there is no listener, and nothing goes to standard output.
func (s *serveCmd) serveRemote(ctx context.Context, cfg config.Config, std Streams) error {
	settings := s.settings(config.Auth{Mode: "none"})
	if err := settings.Check(); err != nil {
		return err
	}
	if settings != (auth.Settings{}) {
		return errors.New("WebSocket listener auth cannot be used with --remote or forward")
	}
	s.warnOfQuery(std.Err)
	e := s.environment(*s.EnvironmentID)
	source, err := s.source(ctx, s.chatGPTFlags, std.In, e, cfg.Remote.HasKey())
	if err != nil {
		return ended(ctx, err)
	}
	d, err := startDaemon(ctx, cfg, std.Err, remote)
	if err != nil {
		return ended(ctx, err)
	}
	if err := d.checkImage(ctx); err != nil {
		return errors.Join(err, d.stop())
	}
	d.startFleet(ctx)
	name := localName(e.EnvironmentID)
	full := cfg.Fill(name, e)
	full.Remote, full.EnvironmentID = e.Remote, e.EnvironmentID // also if that is nothing
	m, err := d.fleet.Add(ctx, fleet.Entry{
		Name: name, Settings: full, Origin: fleet.CommandLine, Source: source, ExitOnRefusal: s.ExitOnRefusal,
	})
	if err != nil {
		return errors.Join(ended(ctx, err), d.stop())
	}
	d.announce(config.NoListener)
	select {
	case <-m.Done():
		err = m.Err()
	case <-s.closed(std.In):
	case <-ctx.Done():
	}
	return errors.Join(err, d.stop())
}

// localName is an environment's own name here: what the registry calls it, if that
// can be one.
func localName(id string) string {
	if transport.ValidEnvironment(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return fmt.Sprintf("env-%x", sum[:6])
}

// serveNone serves environments that are reached through registries alone.
func serveNone(ctx context.Context, cfg config.Config, std Streams) error {
	d, err := startDaemon(ctx, cfg, std.Err, server)
	if err != nil {
		return ended(ctx, err)
	}
	d.startFleet(ctx)
	d.announce(config.NoListener)
	<-ctx.Done()
	return d.stop()
}
