package remote

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/noise"
	"github.com/exec-server/exec-server/internal/remote/registry"
	"github.com/exec-server/exec-server/internal/remote/relay"
	"github.com/exec-server/exec-server/internal/remote/socket"
)

// connect dials what a registration names and serves the socket until it ends. It
// returns how long that held, and why it ended or did not come.
func (l *Link) connect(ctx context.Context, reg registry.Registration) (held time.Duration, err error) {
	l.enter(Connecting, nil, 0)
	s, err := l.dial(ctx, reg)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	l.update(func(st *Status) {
		if !l.first.IsZero() {
			st.Reconnects++
		}
		st.Since = start
	})
	if l.first.IsZero() {
		l.first = start
	}
	l.enter(Connected, nil, 0)
	if l.opts.Transport != Direct {
		err = l.serveStreams(ctx, s, reg)
	} else if err = l.serveDirect(ctx, s, reg); websocket.CloseStatus(err) == websocket.StatusNormalClosure {
		return max(time.Since(start), 1), errLeave
	}
	return max(time.Since(start), 1), fmt.Errorf("the socket to the rendezvous ended: %w", err)
}

// errLeave is how a connection over direct usually ends, and nothing that went wrong.
var errLeave = errors.New("the harness has closed its connection")

func (l *Link) dial(ctx context.Context, reg registry.Registration) (*socket.Socket, error) {
	header, limit := http.Header{}, int64(relay.MaxMessage)
	if l.opts.Transport == Direct {
		limit = socket.MaxMessage
		if err := l.sign(ctx, reg.URL, header); err != nil {
			return nil, err
		}
	} else {
		var id [16]byte
		_, _ = rand.Read(id[:]) // never fails
		header.Set("X-Request-Id", "req_"+hex.EncodeToString(id[:]))
	}
	s, err := l.opts.Dial(ctx, reg.URL, header, limit)
	if refused, ok := errors.AsType[*socket.RefusedError](err); ok {
		if why := knownReason(refused.Header.Get("X-Codex-Rendezvous-Rejection-Reason")); why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the rendezvous: %w", err)
	}
	return s, nil
}

// knownReason is a reason that a rendezvous gives, if it is one of those that it is
// known to give: what comes from outside does not go into the log as it is.
func knownReason(reason string) string {
	switch reason {
	case "pod_draining", "invalid_signature", "unknown_route", "route_unavailable", "missing_role":
		return reason
	}
	return ""
}

// sign puts the credential's signature for the upgrade into header.
func (l *Link) sign(ctx context.Context, target string, header http.Header) error {
	u, err := url.Parse(target)
	if err != nil {
		return errors.New("the registry's URL for the rendezvous is malformed")
	}
	switch u.Scheme {
	case "ws":
		u.Scheme = "http"
	case "wss":
		u.Scheme = "https"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return errors.New("the registry's URL for the rendezvous is malformed")
	}
	if err := l.opts.Credential.Authorize(ctx, r, nil); err != nil {
		return err
	}
	for name, values := range r.Header {
		header[name] = values
	}
	return nil
}

// reregisters tells whether a socket that ended or did not come needs a new
// registration.
func (l *Link) reregisters(err error) bool {
	if errors.Is(err, relay.ErrStranger) {
		return true
	}
	refused, ok := errors.AsType[*socket.RefusedError](err)
	if !ok || refused.Status < 400 || refused.Status > 499 {
		return false
	}
	return l.opts.Transport != Direct || refused.Status != http.StatusRequestTimeout && refused.Status != http.StatusTooManyRequests
}

// serveStreams serves the streams of harnesses.
func (l *Link) serveStreams(ctx context.Context, s *socket.Socket, reg registry.Registration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := make(chan error, 1)
	go func() { silent <- s.Keepalive(ctx) }()
	err := relay.Serve(ctx, s, relay.Options{
		Key: l.key, EnvironmentID: l.opts.EnvironmentID, RegistrationID: reg.ID, Doubt: l.doubt, Log: l.opts.Log,
		Validate: func(ctx context.Context, stream string, harness noise.PublicKey, authorization string) error {
			err := l.opts.Registry.Validate(ctx, reg.ID, stream, harness, authorization)
			if asked, ok := errors.AsType[*registry.Error](err); ok && asked.Status == http.StatusUnauthorized {
				return fmt.Errorf("%w: %w", relay.ErrRejected, err)
			}
			return err
		},
		Serve: func(ctx context.Context, c proto.Conn) {
			l.opts.Serve(ctx, c, proto.Hello{Peer: "exec-server relay", Relayed: true})
		},
		Count: func(n int) { l.update(func(st *Status) { st.Streams = n }) },
	})
	cancel()
	if quiet := <-silent; quiet != nil {
		return quiet
	}
	return err
}

// serveDirect serves the one connection of a socket.
func (l *Link) serveDirect(ctx context.Context, s *socket.Socket, reg registry.Registration) error {
	defer s.Close()
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	l.update(func(st *Status) { st.Streams = 1 })
	l.opts.Serve(ctx, &socket.Conn{Socket: s}, proto.Hello{Peer: directPeer(reg.URL)})
	if err := s.Err(); err != nil {
		return err
	}
	return errors.New("the environment ended the connection")
}

// directPeer is what the reference calls a harness in messages about what it sent,
// less the query, in which there may be a signature.
func directPeer(target string) string {
	target, _, _ = strings.Cut(target, "?")
	return "direct exec-server websocket " + target
}
