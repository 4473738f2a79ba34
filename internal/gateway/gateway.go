// Package gateway finds or makes the environment that a connection is for, and
// joins the two. It keeps no state of the protocol, so that it can die and come
// back without losing any.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/runtime"
)

// Options say how a gateway behaves.
type Options struct {
	Runtime runtime.Runtime
	// Spec describes the environment of a name, from its profile.
	Spec func(name string) runtime.Spec
	// Default is the name of the environment for connections that name none.
	Default string
	// PerSession gives every new session an environment of its own.
	PerSession bool
	// Concurrency is how many requests of a connection are worked on at once.
	Concurrency int
	// MaxEnvironments bounds the environments that live at once.
	MaxEnvironments int
	Log             zerolog.Logger
}

// ErrClosed says that the server is going down.
var ErrClosed = errors.New("the server is shutting down")

// Gateway owns the environments.
type Gateway struct {
	opts Options

	mu     sync.Mutex // guards all below
	envs   map[string]*environment
	closed bool
}

// environment is a sandbox, or one in the making.
type environment struct {
	ready   chan struct{} // closed when the next two are set
	sandbox runtime.Sandbox
	err     error
	gone    chan struct{} // closed when the sandbox was removed
}

func newEnvironment() *environment {
	return &environment{ready: make(chan struct{}), gone: make(chan struct{})}
}

// New returns a gateway, with the sandboxes that an earlier one left.
func New(opts Options, adopted []runtime.Sandbox) *Gateway {
	g := &Gateway{opts: opts, envs: make(map[string]*environment)}
	for _, sb := range adopted {
		e := newEnvironment()
		e.sandbox = sb
		close(e.ready)
		g.envs[sb.Spec().Name] = e
		go g.watch(sb.Spec().Name, e)
		opts.Log.Info().Str("environment", sb.Spec().Name).Msg("environment found running")
	}
	return g
}

// Names lists the environments that live.
func (g *Gateway) Names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := make([]string, 0, len(g.envs))
	for name := range g.envs {
		names = append(names, name)
	}
	return names
}

// Open returns the sandbox of that name, and makes it if there is none. All who
// ask for it meanwhile get the same.
func (g *Gateway) Open(ctx context.Context, spec runtime.Spec) (runtime.Sandbox, error) {
	for {
		e, err := g.find(ctx, spec)
		if err != nil {
			return nil, err
		}
		if err := await(ctx, e.ready); err != nil {
			return nil, err
		}
		if e.err != nil {
			return nil, e.err
		}
		select {
		case <-e.sandbox.Done(): // it has ended: its successor has to wait for its removal
			if err := await(ctx, e.gone); err != nil {
				return nil, err
			}
		default:
			return e.sandbox, nil
		}
	}
}

func await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// find returns the environment of that name, which may be in the making.
func (g *Gateway) find(ctx context.Context, spec runtime.Spec) (*environment, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	if e := g.envs[spec.Name]; e != nil {
		return e, nil
	}
	if n := len(g.envs); g.opts.MaxEnvironments > 0 && n >= g.opts.MaxEnvironments {
		return nil, fmt.Errorf("%d environments live, which is the most that limits.environments allows", n)
	}
	e := newEnvironment()
	g.envs[spec.Name] = e
	// Whoever else waits for it must not lose it with this connection.
	go g.run(context.WithoutCancel(ctx), spec, e)
	return e, nil
}

// run makes an environment's sandbox and stays with it until it is gone.
func (g *Gateway) run(ctx context.Context, spec runtime.Spec, e *environment) {
	log := g.opts.Log.With().Str("environment", spec.Name).Logger()
	if spec.Image != "" {
		log = log.With().Str("image", spec.Image).Logger()
	}
	e.sandbox, e.err = g.opts.Runtime.Create(ctx, spec)
	if e.err != nil {
		log.Error().Err(e.err).Msg("environment not started")
		g.forget(spec.Name, e)
		close(e.ready)
		return
	}
	log.Info().Msg("environment started")
	close(e.ready)
	g.watch(spec.Name, e)
}

// watch removes an environment when its sandbox has ended, and then forgets it.
func (g *Gateway) watch(name string, e *environment) {
	<-e.sandbox.Done()
	err := e.sandbox.Remove(context.Background())
	g.forget(name, e)
	close(e.gone)
	log := g.opts.Log.With().Str("environment", name).Logger()
	if err != nil {
		log.Error().Err(err).Msg("environment not removed")
		return
	}
	log.Info().Msg("environment ended")
}

func (g *Gateway) forget(name string, e *environment) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.envs[name] == e {
		delete(g.envs, name)
	}
}

// Close removes all environments. It returns when they are gone.
func (g *Gateway) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	all := make([]*environment, 0, len(g.envs))
	for _, e := range g.envs {
		all = append(all, e)
	}
	g.mu.Unlock()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, e := range all {
		wg.Go(func() {
			<-e.ready // Create has a deadline of its own
			if e.err == nil {
				errs[i] = e.sandbox.Remove(ctx)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
