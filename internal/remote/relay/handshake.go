package relay

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/exec-server/exec-server/internal/remote/noise"
)

// maxAuthorization bounds what a harness brings from the registry, in bytes.
const maxAuthorization = 4096

// rejection is the payload of the second message that says that the executor's
// credential was rejected.
const rejection = "codex-registry-authentication-rejected/v1"

var (
	errAuthorization = errors.New("the harness brings no authorization that could be one")
	errPausing       = errors.New("too many handshakes failed")
	errEarly         = errors.New("more came before the registry had answered about the harness")
	errOpen          = errors.New("a second handshake came for an open stream, which stays")
	errStreams       = fmt.Errorf("%d streams are open", maxStreams)
	errValidations   = fmt.Errorf("%d harnesses wait for the registry's answer", maxValidations)
)

// handshake begins a stream: it reads the first message, and asks the registry
// beside the reading. An error is that the message cannot be read with the key and
// the registration of this socket.
func (m *mux) handshake(f Frame) error {
	m.mu.Lock()
	err := m.admit(f.StreamID)
	m.mu.Unlock()
	if err != nil {
		switch err {
		case errPausing: // which was told when it began
		case errEarly:
			m.failed(f.StreamID, err)
		default:
			m.log.warn(f.StreamID).Err(err).Msg("stream refused")
		}
		m.sendReset(f.StreamID)
		return nil
	}
	prologue := noise.Prologue(m.opts.EnvironmentID, m.opts.RegistrationID, f.StreamID)
	r, err := noise.ReadInitiation(m.opts.Key, prologue, f.Payload)
	stranger := err
	if err == nil && (len(r.Payload) > maxAuthorization || !utf8.Valid(r.Payload)) {
		err = errAuthorization
	}
	if err != nil {
		m.failed(f.StreamID, err)
		m.sendReset(f.StreamID)
		return stranger
	}
	e := &entry{}
	var ctx context.Context
	ctx, e.cancel = context.WithCancel(m.ctx)
	m.mu.Lock()
	m.streams[f.StreamID] = e
	m.asking++
	m.mu.Unlock()
	m.work.Go(func() {
		defer e.cancel()
		m.validate(ctx, f.StreamID, e, r)
	})
	return nil
}

// admit tells why a handshake for that id may not be looked at. m.mu is held.
func (m *mux) admit(id string) error {
	e := m.streams[id]
	switch {
	case m.guard.pausing():
		return errPausing
	case e == nil && !m.room():
		return errStreams
	case e == nil && m.asking >= maxValidations:
		return errValidations
	case e == nil:
		return nil
	case e.stream == nil: // a second one is nobody's
		m.forget(id, e)
		return errEarly
	}
	return errOpen
}

// failed counts a handshake that failed, and why.
func (m *mux) failed(id string, why error) {
	m.log.warn(id).Err(why).Msg("stream refused")
	m.mu.Lock()
	pause := m.guard.failed()
	m.mu.Unlock()
	if pause {
		m.log.warn(id).Msg("too many handshakes failed: none is looked at for a while")
	}
}

// room tells whether another stream may be opened. m.mu is held.
func (m *mux) room() bool { return m.open < maxStreams && m.served < maxServed }

// validate asks the registry and answers the handshake.
func (m *mux) validate(ctx context.Context, id string, e *entry, r *noise.Responder) {
	err := m.opts.Validate(ctx, id, r.Peer, string(r.Payload))
	var answer []byte
	var s *stream
	payload := ""
	if errors.Is(err, ErrRejected) {
		payload = rejection
	}
	if err == nil || payload != "" {
		var c *noise.Channel
		var failed error
		if answer, c, failed = r.Answer([]byte(payload)); failed != nil {
			err, payload = failed, ""
		} else if err == nil {
			s = newStream(m, id, c)
		}
	}
	m.mu.Lock()
	m.asking--
	current := m.streams[id] == e // it may have been dropped meanwhile
	full := current && s != nil && !m.room()
	if current {
		if s == nil || full {
			delete(m.streams, id)
		} else {
			m.streams[id] = &entry{stream: s}
			m.open++
			m.served++
			m.count()
		}
	}
	m.mu.Unlock()
	switch {
	case !current:
	case err != nil && m.ctx.Err() != nil: // the socket has ended, and that is no harness's failure
	case full:
		m.log.warn(id).Err(errStreams).Msg("stream refused")
		m.sendReset(id)
	case err != nil && payload == "":
		m.failed(id, err)
		m.sendReset(id)
	case err != nil:
		m.failed(id, err)
		m.sender.answer(message(Frame{Kind: Handshake, StreamID: id, Payload: answer}))
	default:
		m.opts.Log.Debug().Str("stream", brief(id)).Msg("stream opened")
		m.start(s, answer)
	}
}

// start answers the handshake, in the stream's own lane so that nothing overtakes
// it, and serves the stream.
func (m *mux) start(s *stream, answer []byte) {
	defer func() {
		s.discard()
		m.mu.Lock()
		m.served--
		m.mu.Unlock()
	}()
	if m.sender.send(s.lane, message(Frame{Kind: Handshake, StreamID: s.id, Payload: answer})) != nil {
		return
	}
	m.opts.Serve(m.ctx, s)
	m.finish(s)
}
