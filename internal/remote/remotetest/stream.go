package remotetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/noise"
	"github.com/exec-server/exec-server/internal/remote/relay"
)

// How a stream ends, or does not begin.
var (
	ErrReset    = errors.New("remotetest: the executor has reset the stream")
	ErrRejected = errors.New("remotetest: the executor's credential was rejected")
	ErrLost     = errors.New("remotetest: the executor's socket is gone")
	ErrClosed   = errors.New("remotetest: the stream is closed")
	ErrBusy     = errors.New("remotetest: the executor has a connection, and takes one only")
)

// maxWaiting is how many frames wait in a stream before its socket's others wait
// for it to be read.
const maxWaiting = 256

// Stream is a stream through an executor's socket as the frames that it consists
// of.
type Stream struct {
	ID string
	// Authorization goes into the handshake: one that the registry knows, unless it
	// is changed.
	Authorization string

	socket    *socket
	in        chan relay.Frame
	closing   sync.Once
	closed    chan struct{}
	initiator *noise.Initiator
}

// Claim begins a stream of an environment, under an id or, if that is "", a random
// one, and waits for an executor if none is connected. Nothing is sent yet.
func (p *Peer) Claim(ctx context.Context, environmentID, streamID string) (*Stream, error) {
	if streamID == "" {
		streamID = proto.NewSessionID()
	}
	if err := p.AwaitSocket(ctx, environmentID, 0); err != nil {
		return nil, fmt.Errorf("no executor of %s: %w", environmentID, err)
	}
	key, err := p.harness.Public().MarshalJSON()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.envs[environmentID].socket
	if s == nil {
		return nil, ErrLost
	}
	if s.direct != nil || s.streams[streamID] != nil {
		return nil, ErrBusy
	}
	p.numbered++
	st := &Stream{
		ID: streamID, Authorization: fmt.Sprint("authorization-", p.numbered), socket: s,
		in: make(chan relay.Frame, maxWaiting), closed: make(chan struct{}),
	}
	s.streams[streamID] = st
	p.grants[st.Authorization] = grant{environmentID, s.registration, streamID, string(key)}
	return st, nil
}

// Send sends a frame, of this stream if it names none.
func (st *Stream) Send(f relay.Frame) error {
	if f.StreamID == "" {
		f.StreamID = st.ID
	}
	return st.socket.peer.pass(st.socket.env, func(f *Faults) *Way { return &f.ToExecutor }, f, func(f relay.Frame) error {
		if err := st.socket.write(websocket.MessageBinary, f.Append(nil)); err != nil {
			return ErrLost
		}
		return nil
	})
}

// Next returns the next frame from the executor. It may be called by one goroutine
// at a time.
func (st *Stream) Next(ctx context.Context) (relay.Frame, error) {
	var err error
	select {
	case f := <-st.in:
		return f, nil
	case <-st.socket.done:
		err = ErrLost
	case <-st.closed:
		err = ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	select {
	case f := <-st.in:
		return f, nil
	default:
		return relay.Frame{}, err
	}
}

// Close forgets the stream, and tells the executor that its harness is gone.
func (st *Stream) Close() {
	st.closing.Do(func() {
		if !st.socket.gate.isFrozen() {
			_ = st.Send(relay.Frame{Kind: relay.Reset, Reason: "harness_disconnected"})
		}
		st.Forget()
	})
}

// Forget forgets the stream without a word to the executor.
func (st *Stream) Forget() {
	p := st.socket.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if st.socket.streams[st.ID] == st {
		delete(st.socket.streams, st.ID)
		delete(p.grants, st.Authorization)
		close(st.closed)
	}
}
