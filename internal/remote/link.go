package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/credential"
	"github.com/exec-server/exec-server/internal/remote/noise"
	"github.com/exec-server/exec-server/internal/remote/registry"
	"github.com/exec-server/exec-server/internal/remote/socket"
)

// Options say whose link it is.
type Options struct {
	EnvironmentID string
	Registry      Registry
	Credential    credential.Source
	// Dial opens a WebSocket whose messages are bounded.
	Dial      func(ctx context.Context, url string, header http.Header, limit int64) (*socket.Socket, error)
	Transport Transport
	// Serve serves the connection of a harness until it ends, or ctx does.
	Serve func(ctx context.Context, c proto.Conn, hello proto.Hello)
	// ExitOnRefusal makes Run return what it would otherwise try again slowly.
	ExitOnRefusal bool
	Log           zerolog.Logger // names the environment
}

// Registry is what a link needs of a *registry.Client.
type Registry interface {
	RegisterNoise(ctx context.Context, key noise.PublicKey) (registry.Registration, error)
	RegisterDirect(ctx context.Context) (registry.Registration, error)
	Validate(ctx context.Context, registrationID, streamID string, harness noise.PublicKey, authorization string) error
}

// Link is one environment's way out.
type Link struct {
	opts  Options
	key   *noise.KeyPair // of all registrations of the process
	first time.Time      // when there was a socket first; Run's
	doubt bool           // whether the registry may have another registration for the latest; Run's
	// pause is delay, or a test's own.
	pause func(n int) time.Duration

	mu     sync.Mutex // guards status
	status Status
}

// New makes a link.
func New(opts Options) (*Link, error) {
	key, err := noise.GenerateKeyPair()
	if err != nil {
		return nil, err
	}
	l := &Link{opts: opts, key: key, status: Status{State: Registering, Transport: opts.Transport}}
	l.pause = l.delay
	return l, nil
}

// Status tells where the link stands.
func (l *Link) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

func (l *Link) update(f func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.status)
}

// enter notes a state, and logs it with what led there.
func (l *Link) enter(s State, err error, wait time.Duration) {
	why := words(err)
	l.update(func(st *Status) {
		if st.State = s; s != Connected {
			st.Since, st.Streams = time.Time{}, 0
		}
		if st.NextTry = (time.Time{}); wait > 0 {
			st.NextTry = time.Now().Add(wait)
		}
		if err != nil && !errors.Is(err, errLeave) {
			st.LastError, st.LastErrorAt = why, time.Now()
		}
	})
	e := l.opts.Log.Info()
	switch {
	case errors.Is(err, errLeave):
		e = e.Str("reason", why)
	case err != nil:
		e = l.opts.Log.Warn().Str("error", why)
	}
	if wait > 0 {
		e = e.Stringer("retry_in", wait.Round(time.Millisecond))
	}
	e.Str("state", string(s)).Msg("remote " + string(s))
}

// errLeft says that the owner of the credential has left.
var errLeft = errors.New("the credential's owner has left")

// Run keeps the environment reachable until ctx ends or the owner of its credential
// leaves, which is nil. Errors are what ExitOnRefusal asks for, and what the owner
// of the credential did wrong.
func (l *Link) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if done := l.opts.Credential.Done(); done != nil {
		go func() {
			select {
			case <-done:
				cancel(errLeft)
			case <-ctx.Done():
			}
		}()
	}
	err := l.run(ctx)
	if errors.Is(context.Cause(ctx), errLeft) {
		err = l.opts.Credential.Err()
	} else if ctx.Err() != nil {
		err = nil
	}
	l.enter(Stopped, err, 0)
	return err
}

func (l *Link) run(ctx context.Context) error {
	reg, err := l.register(ctx, nil)
	if err != nil {
		return err
	}
	for failures := 1; ; failures++ { // sockets in a row that ended or did not come
		held, err := l.connect(ctx, reg)
		if held >= steady || l.opts.Transport == Direct && held > 0 {
			failures = 1
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if l.reregisters(err) {
			// At once, and the wait after it: the new URL may be refused as well.
			if reg, err = l.register(ctx, err); err != nil {
				return err
			}
		}
		wait := l.pause(failures)
		l.enter(Disconnected, err, wait)
		if err := sleep(ctx, wait, nil); err != nil {
			return err
		}
	}
}

// register registers the environment, as often as it takes. why is what the last
// socket failed with.
func (l *Link) register(ctx context.Context, why error) (reg registry.Registration, err error) {
	l.doubt = false
	for n := 1; ; n++ {
		changed := l.opts.Credential.Changed()
		l.enter(Registering, why, 0)
		why = nil
		if l.opts.Transport == Direct {
			reg, err = l.opts.Registry.RegisterDirect(ctx)
		} else {
			reg, err = l.opts.Registry.RegisterNoise(ctx, l.key.Public())
		}
		if err == nil || ctx.Err() != nil {
			return reg, err
		}
		wait := registerDelay(n)
		if passing(err) {
			if asked, ok := errors.AsType[*registry.Error](err); ok {
				wait = max(wait, min(asked.RetryAfter, maxRetryAfter))
			} else {
				l.doubt = true // it may have been heard, and be worked on later than the next
			}
			l.enter(Disconnected, err, wait)
		} else {
			if l.opts.ExitOnRefusal {
				return reg, err
			}
			wait = slow()
			l.enter(Failed, err, wait)
		}
		if err := sleep(ctx, wait, changed); err != nil {
			return reg, err
		}
	}
}

// passing tells whether what kept a registration from being made may go by itself:
// the network, a registry that is not well, another executor in the place of
// this one (409). An answer that cannot be used, and a credential that is not
// there, are somebody's to mend.
func passing(err error) bool {
	if asked, ok := errors.AsType[*registry.Error](err); ok {
		switch asked.Status {
		case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
			return true
		}
		return asked.Status >= 500
	}
	return !errors.Is(err, registry.ErrAnswer) && !errors.Is(err, credential.ErrUnavailable)
}

// sleep waits, until ctx ends, which is an error, or early when changed is closed.
func sleep(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-ctx.Done():
		return fmt.Errorf("remote: %w", context.Cause(ctx))
	}
	return nil
}
