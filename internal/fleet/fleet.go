package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/gateway"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/credential"
)

// Gateway is the part of a gateway.Gateway that is used.
type Gateway interface {
	ServeNamed(ctx context.Context, c proto.Conn, name string, hello proto.Hello)
	Remove(ctx context.Context, name string) error
}

// Options say what a fleet works with.
type Options struct {
	Gateway Gateway
	// Complete fills what settings leave out, and checks them.
	Complete func(name string, e config.Environment) (config.Environment, error)
	// Connect makes a link; nil is Connect.
	Connect func(ctx context.Context, p Plan) (Link, error)
	// State is the path of the file in which environments are kept; "" is none.
	State string
	Log   zerolog.Logger
}

// Origin says where an environment comes from.
type Origin string

// The origins.
const (
	Configured  Origin = "configuration"
	Added       Origin = "added" // while the daemon runs
	CommandLine Origin = "command line"
)

// Entry is an environment that is to be served.
type Entry struct {
	Name string
	// Settings as they were given. What they leave out is filled in, but not kept.
	// Those of the command line are complete, and held to the reference's rules
	// alone.
	Settings config.Environment
	Origin   Origin
	// Source is the credential, if it is none that the settings name. An added
	// environment with one is not kept.
	Source credential.Source
	// ExitOnRefusal ends the link when the registry refuses it.
	ExitOnRefusal bool
}

// ErrClosed says that the daemon is going down.
var ErrClosed = errors.New("the server is shutting down")

// Fleet is the set of links of a daemon.
type Fleet struct {
	opts Options
	ctx  context.Context // of all links; ends with Close

	cancel context.CancelFunc
	saving sync.Mutex // held while the state file is written

	mu      sync.Mutex // guards the rest, and the fields of members that say so
	members map[string]*Member
	closed  bool
}

// New returns a fleet without environments.
func New(opts Options) *Fleet {
	if opts.Connect == nil {
		opts.Connect = Connect
	}
	f := &Fleet{opts: opts, members: make(map[string]*Member)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Add begins to serve an environment, and returns when its link is made; it may be
// connected much later. If it cannot be made nothing is added.
func (f *Fleet) Add(ctx context.Context, e Entry) (*Member, error) {
	m, err := f.insert(e, true)
	if err != nil {
		return nil, err
	}
	select {
	case err = <-m.first:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil && m.kept {
		err = f.save()
	}
	if err != nil {
		m.cancel()
		<-m.done
		f.forget(m)
		return nil, err
	}
	return m, nil
}

// Start begins to serve environments that have been decided on: one that cannot be
// served has failed, and is tried again.
func (f *Fleet) Start(entries ...Entry) {
	for _, e := range entries {
		if _, err := f.insert(e, false); err != nil {
			f.opts.Log.Error().Err(err).Str("environment", e.Name).Msg("environment is not served through a registry")
		}
	}
}

// insert reserves the name, and starts the member. A strict one must be right.
func (f *Fleet) insert(e Entry, strict bool) (*Member, error) {
	settings, err := f.complete(e)
	if err != nil && strict {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	if f.members[e.Name] != nil {
		return nil, fmt.Errorf("there is an environment %s already", e.Name)
	}
	for name, other := range f.members {
		if err == nil && other.settings.Address() == settings.Address() {
			return nil, fmt.Errorf("environment %s has that id at that registry already", name)
		}
	}
	m := f.newMember(e, settings, err)
	m.strict = strict
	f.members[e.Name] = m
	go m.run()
	return m, nil
}

func (f *Fleet) complete(e Entry) (config.Environment, error) {
	if e.Origin == CommandLine {
		return e.Settings, nil
	}
	settings, err := f.opts.Complete(e.Name, e.Settings)
	switch {
	case err != nil:
		return settings, err
	case e.Origin == Added && e.Settings.ProxyHasSecret():
		return settings, errors.New("proxy: its user and password would be written down; put it into the configuration, or into the server's HTTPS_PROXY")
	case settings.Transport == config.Noise && e.Source == nil && !settings.HasKey():
		return settings, errors.New("there is no key for the registry: neither a file, nor a variable, nor a command")
	}
	return settings, nil
}

// errServed says that the daemon would end with an environment.
var errServed = errors.New("the server was started for it by --remote, and would end with it: end the server")

// Remove ends an environment's link, then the environment, whose workspace stays.
// One that has no link is removed as well. If it fails it may be called again.
func (f *Fleet) Remove(ctx context.Context, name string) error {
	f.mu.Lock()
	m := f.members[name]
	f.mu.Unlock()
	if m != nil && m.Origin == CommandLine {
		return errServed
	}
	if m != nil {
		m.cancel()
		select {
		case <-m.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := f.opts.Gateway.Remove(ctx, name); err != nil && (m == nil || !errors.Is(err, gateway.ErrUnknown)) {
		return err
	}
	if m == nil {
		return nil
	}
	f.forget(m)
	if !m.kept {
		return nil
	}
	err := f.save()
	if err != nil {
		f.recall(m) // the file has it still
	}
	return err
}

// recall undoes forget, unless the name was taken meanwhile.
func (f *Fleet) recall(m *Member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.members[m.Name] == nil {
		f.members[m.Name] = m
	}
}

func (f *Fleet) forget(m *Member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.members[m.Name] == m {
		delete(f.members, m.Name)
	}
}

// List tells about all environments, by name.
func (f *Fleet) List() []Info {
	f.mu.Lock()
	all := slices.Collect(maps.Values(f.members))
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b *Member) int { return strings.Compare(a.Name, b.Name) })
	list := make([]Info, len(all))
	for i, m := range all {
		list[i] = m.info()
	}
	return list
}

// Profile is the profile of an environment; "" if it is not of the fleet.
func (f *Fleet) Profile(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.members[name]; m != nil {
		return m.settings.Profile
	}
	return ""
}

// Close ends all links. The environments live on.
func (f *Fleet) Close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	all := slices.Collect(maps.Values(f.members))
	f.mu.Unlock()
	f.cancel()
	for _, m := range all {
		select {
		case <-m.done:
		case <-ctx.Done():
			return fmt.Errorf("end the link of %s: %w", m.Name, ctx.Err())
		}
	}
	return nil
}
