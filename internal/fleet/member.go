package fleet

import (
	"context"
	"time"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote"
)

// retryAfter is how long a link that cannot be made waits for the next try, for
// what is missing may come: credentials of a machine that starts, say.
const retryAfter = time.Minute

// Member is an environment of a fleet.
type Member struct {
	Entry
	f        *Fleet
	settings config.Environment // complete, unless wrong
	wrong    error              // with the settings
	kept     bool
	strict   bool // the first try has to do

	ctx    context.Context
	cancel context.CancelFunc
	first  chan error    // has the outcome of the first try to make the link
	done   chan struct{} // closed when the link has ended for good

	link   Link // nil until it is made; guarded by Fleet.mu
	err    error
	failed time.Time // when err was; both guarded by Fleet.mu
}

func (f *Fleet) newMember(e Entry, settings config.Environment, wrong error) *Member {
	m := &Member{
		Entry: e, f: f, settings: settings, wrong: wrong, kept: e.Origin == Added && e.Source == nil,
		first: make(chan error, 1), done: make(chan struct{}),
	}
	m.ctx, m.cancel = context.WithCancel(f.ctx)
	return m
}

// Done is closed when the link has ended: the environment was removed, the owner
// of its credential has left, or it was refused and was to end then.
func (m *Member) Done() <-chan struct{} { return m.done }

// Err tells, after Done, why the link has ended; nil if that is as it should be.
func (m *Member) Err() error {
	m.f.mu.Lock()
	defer m.f.mu.Unlock()
	return m.err
}

// Kept says that the environment is written down.
func (m *Member) Kept() bool { return m.kept }

// run makes the link and stays with it to its end.
func (m *Member) run() {
	defer close(m.done)
	defer m.cancel()
	log := m.f.opts.Log.With().Str("environment", m.Name).Logger()
	for last := ""; ; {
		link, err := m.connect()
		select {
		case m.first <- err:
		default: // it is not the first
		}
		if m.ctx.Err() != nil || err != nil && m.strict {
			return
		}
		if err == nil {
			m.note(link, nil)
			m.note(link, link.Run(m.ctx))
			return
		}
		m.note(nil, err)
		if text := err.Error(); text != last {
			log.Error().Err(err).Stringer("again_in", retryAfter).Msg("environment cannot be served through its registry")
			last = text
		}
		select {
		case <-m.ctx.Done():
			return
		case <-time.After(retryAfter):
		}
	}
}

func (m *Member) connect() (Link, error) {
	if m.wrong != nil {
		return nil, m.wrong
	}
	return m.f.opts.Connect(m.ctx, Plan{
		Name: m.Name, Settings: m.settings, Source: m.Source, ExitOnRefusal: m.ExitOnRefusal, Log: m.f.opts.Log,
		Serve: func(ctx context.Context, c proto.Conn, hello proto.Hello) {
			m.f.opts.Gateway.ServeNamed(ctx, c, m.Name, hello)
		},
	})
}

func (m *Member) note(link Link, err error) {
	m.f.mu.Lock()
	defer m.f.mu.Unlock()
	m.link, m.err = link, err
	if err != nil {
		m.failed = time.Now()
	}
}

// Info is what there is to tell about an environment.
type Info struct {
	Name     string
	Settings config.Environment // complete
	Origin   Origin
	Kept     bool
	Status   remote.Status
}

func (m *Member) info() Info {
	m.f.mu.Lock()
	link, err, failed := m.link, m.err, m.failed
	m.f.mu.Unlock()
	i := Info{Name: m.Name, Settings: m.settings, Origin: m.Origin, Kept: m.kept}
	if link != nil {
		i.Status = link.Status()
	} else {
		i.Status.State = remote.Registering
	}
	if err != nil {
		i.Status.LastError, i.Status.LastErrorAt = err.Error(), failed
		if link == nil {
			i.Status.State, i.Status.NextTry = remote.Failed, failed.Add(retryAfter)
		}
	}
	select {
	case <-m.done:
		i.Status.State, i.Status.NextTry = remote.Stopped, time.Time{}
	default:
	}
	i.Status.Transport = remote.Transport(m.settings.Transport)
	return i
}
