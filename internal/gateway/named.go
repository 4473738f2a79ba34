package gateway

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/exec-server/exec-server/internal/network"
	"github.com/exec-server/exec-server/internal/proto"
)

// ErrUnknown says that no environment of that name lives.
var ErrUnknown = errors.New("there is no such environment")

// ServeNamed serves a connection that came for the named environment by another
// way than the listener; the hello says which. It returns when the connection has
// ended.
func (g *Gateway) ServeNamed(ctx context.Context, c proto.Conn, name string, hello proto.Hello) {
	if hello.Concurrency < 1 {
		hello.Concurrency = g.opts.Concurrency
	}
	g.serveNamed(ctx, c, g.opts.Spec(name), hello)
}

// Remove ends the environment of that name, with all its connections, and returns
// when it is gone. Its workspace stays, unless it is ephemeral.
func (g *Gateway) Remove(ctx context.Context, name string) error {
	g.mu.Lock()
	e := g.envs[name]
	g.mu.Unlock()
	if e == nil {
		return ErrUnknown
	}
	if err := await(ctx, e.ready); err != nil {
		return err
	}
	if e.err != nil {
		return ErrUnknown
	}
	if err := e.sandbox.Remove(ctx); err != nil {
		return err
	}
	return await(ctx, e.gone)
}

// Networks returns the counters of the environments that have a network of their
// own.
func (g *Gateway) Networks() map[string]network.Stats {
	stats := map[string]network.Stats{}
	for _, name := range g.Names() {
		if sb := g.Living(name); sb != nil && sb.Network() != nil {
			stats[name] = sb.Network().Stats()
		}
	}
	return stats
}

// Census asks all environments that live what they have. One that does not say
// has nil.
func (g *Gateway) Census(ctx context.Context) map[string]*proto.Counts {
	g.mu.Lock()
	all := maps.Clone(g.envs)
	g.mu.Unlock()
	var mu sync.Mutex // guards census
	census := make(map[string]*proto.Counts, len(all))
	var wg sync.WaitGroup
	for name, e := range all {
		wg.Go(func() {
			counts := e.counts(ctx)
			mu.Lock()
			defer mu.Unlock()
			census[name] = counts
		})
	}
	wg.Wait()
	return census
}

func (e *environment) counts(ctx context.Context) *proto.Counts {
	select {
	case <-e.ready:
	default: // nobody can have done anything in it yet
		return &proto.Counts{}
	}
	if e.err != nil {
		return nil
	}
	counts, err := e.sandbox.Counts(ctx)
	if err != nil {
		return nil
	}
	return &counts
}
