package remotetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/noise"
	"github.com/exec-server/exec-server/internal/remote/relay"
)

// rejected is what an executor says whose credential the registry does not take.
const rejected = "codex-registry-authentication-rejected/v1"

// Open opens a connection to an environment as a harness does, and waits for an
// executor if none is connected. Over a direct socket there is one at a time. The
// connection also ends with the socket.
func (p *Peer) Open(ctx context.Context, environmentID string) (proto.Conn, error) {
	if err := p.AwaitSocket(ctx, environmentID, 0); err != nil {
		return nil, fmt.Errorf("no executor of %s: %w", environmentID, err)
	}
	if s := p.socketOf(environmentID); s != nil && s.direct != nil {
		return s.openDirect()
	}
	st, err := p.Claim(ctx, environmentID, "")
	if err != nil {
		return nil, err
	}
	c, err := st.Open(ctx)
	if err != nil {
		st.Close()
		return nil, err
	}
	return c, nil
}

// Open does the handshake.
func (st *Stream) Open(ctx context.Context) (*Conn, error) {
	message, err := st.Initiate()
	if err != nil {
		return nil, err
	}
	for _, f := range []relay.Frame{{Kind: relay.Resume}, {Kind: relay.Handshake, Payload: message}} {
		if err := st.Send(f); err != nil {
			return nil, err
		}
	}
	return st.Finish(ctx)
}

// Initiate makes the first message of a handshake, and sends nothing.
func (st *Stream) Initiate() ([]byte, error) {
	p := st.socket.peer
	f := p.look(st.socket.env)
	p.mu.Lock()
	executor := p.envs[st.socket.env].key
	p.mu.Unlock()
	harness := p.harness
	if f.WrongHarnessKey {
		harness = p.other
	}
	if f.WrongExecutorKey {
		executor = p.other.Public()
	}
	prologue := noise.Prologue(st.socket.env, st.socket.registration, st.ID)
	i, message, err := noise.Initiate(harness, executor, prologue, []byte(st.Authorization))
	st.initiator = i
	return message, err
}

// Finish waits for the answer to the message that Initiate made.
func (st *Stream) Finish(ctx context.Context) (*Conn, error) {
	f, err := st.Next(ctx)
	if err != nil {
		return nil, err
	}
	switch f.Kind {
	case relay.Reset:
		return nil, fmt.Errorf("%w: %s", ErrReset, f.Reason)
	case relay.Data:
		return nil, errors.New("remotetest: data comes before the handshake")
	}
	payload, channel, err := st.initiator.Finish(f.Payload)
	if err != nil {
		return nil, err
	}
	switch string(payload) {
	case "":
		return &Conn{Stream: st, channel: channel}, nil
	case rejected:
		return nil, ErrRejected
	}
	return nil, fmt.Errorf("remotetest: the handshake says %q", payload)
}
