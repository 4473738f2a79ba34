package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/fleet"
	"github.com/exec-server/exec-server/internal/forward"
	"github.com/exec-server/exec-server/internal/remote/egress"
)

type forwardCmd struct {
	Connect       string `required:"" placeholder:"URL" help:"The server that connections go to, ws://HOST:PORT."`
	EnvironmentID string `required:"" placeholder:"ID" help:"What the registry calls it."`

	remoteFlags
	stockFlags
}

// check finds mistakes on the command line, before anything is read.
func (f *forwardCmd) check() error {
	if err := f.stockFlags.check(); err != nil {
		return err
	}
	if f.Remote == nil {
		return usageError("forward needs --remote")
	}
	return f.remoteFlags.check(chatGPTFlags{}, true, false)
}

// Run forwards until SIGTERM, SIGINT or SIGHUP.
func (f *forwardCmd) Run(ctx context.Context, common *Common, std Streams) error {
	if err := f.check(); err != nil {
		return err
	}
	cfg, err := common.load()
	if err != nil {
		return err
	}
	if err := f.offered(); err != nil {
		return err
	}
	f.warn(std.Err)
	if f.AWSSigV4 && f.transport() == config.Direct {
		return errors.New("direct exec-server transport does not support forwarding")
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	f.warnOfQuery(std.Err)
	link, to, err := f.link(ctx, cfg, std)
	if err != nil {
		return ended(ctx, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var check sync.WaitGroup
	defer check.Wait()
	defer cancel()
	check.Go(func() { to.Check(ctx) })
	over := make(chan error, 1)
	go func() { over <- link.Run(ctx) }()
	select {
	case err := <-over:
		return err
	case <-f.closed(std.In):
	case <-ctx.Done():
	}
	cancel()
	return <-over
}

// link makes the link, whose every connection has one of its own to the server.
func (f *forwardCmd) link(ctx context.Context, cfg config.Config, std Streams) (fleet.Link, *forward.Forwarder, error) {
	e := f.environment(f.EnvironmentID)
	source, err := f.source(ctx, chatGPTFlags{}, std.In, e, cfg.Remote.HasKey())
	if err != nil {
		return nil, nil, err
	}
	log, err := newLogger(cfg.Log, std.Err)
	if err != nil {
		return nil, nil, err
	}
	name := localName(e.EnvironmentID)
	full := cfg.Fill(name, e)
	full.Remote, full.EnvironmentID = e.Remote, e.EnvironmentID
	way, err := egress.New(egress.Options{ProxyURL: config.NoProxy, CAFile: full.CAFile})
	if err != nil {
		return nil, nil, err
	}
	to, err := forward.New(forward.Options{URL: f.Connect, Dial: way.Connect, Log: log.With().Str("environment", name).Logger()})
	if err != nil {
		return nil, nil, err
	}
	link, err := fleet.Connect(ctx, fleet.Plan{
		Name: name, Settings: full, Source: source, ExitOnRefusal: f.ExitOnRefusal, Serve: to.Serve, Log: log,
	})
	return link, to, err
}
