package relay

import (
	"context"
	"errors"
	"strings"
	"sync"
	"unicode"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/noise"
	"github.com/exec-server/exec-server/internal/wsframe"
)

// MaxMessage is the largest message of the rendezvous, in bytes. A larger one ends
// the socket.
const MaxMessage = 256 << 10

// Bounds on a socket.
const (
	maxStreams     = 128
	maxValidations = 32
	// maxServed also counts streams that have ended, and whose server has not noticed
	// yet: while an environment is being made, say.
	maxServed = 2 * maxStreams
)

// resetReason is what all resets say: causes are not for everybody to tell apart.
const resetReason = "noise_relay_protocol_error"

// ErrRejected is what Validate returns if the registry does not accept the
// executor's own credential.
var ErrRejected = errors.New("the registry rejected the executor's credential")

// ErrStranger is that a harness came for another registration.
var ErrStranger = errors.New("the registry sends harnesses for another registration")

// Options say whose streams a socket carries.
type Options struct {
	Key            *noise.KeyPair
	EnvironmentID  string
	RegistrationID string
	// Doubt is that the registry may send harnesses with another registration. The
	// first handshake, if it is made for another, then ends the socket with
	// ErrStranger.
	Doubt bool
	// Validate asks the registry about a harness. nil is its consent.
	Validate func(ctx context.Context, streamID string, harness noise.PublicKey, authorization string) error
	// Serve serves a stream until it ends. It need not close it.
	Serve func(ctx context.Context, c proto.Conn)
	// Count is told how many streams are open, whenever that changes; nil is nobody.
	// It must not block.
	Count func(n int)
	Log   zerolog.Logger
}

// Socket is a WebSocket to a rendezvous.
type Socket interface {
	// Read returns the next message, valid until the next call.
	Read() (message []byte, binary bool, err error)
	// Write sends whole WebSocket frames.
	Write(frames []byte) error
	Close() error
}

// mux is a socket with its streams.
type mux struct {
	opts   Options
	sender *sender
	budget *budget
	log    notices
	ctx    context.Context // ends with the socket

	mu      sync.Mutex // guards all below; not held while sending
	streams map[string]*entry
	open    int // streams that are
	served  int // calls of opts.Serve
	asking  int // validations under way
	guard   guard

	work sync.WaitGroup // validations and streams
}

// entry is what an id stands for: a stream, or one that waits for the registry.
type entry struct {
	stream *stream            // nil while it waits
	cancel context.CancelFunc // of the validation
}

// Serve serves the streams of a socket until that ends, and says why it did. When
// it returns, the streams have ended and the socket is closed.
func Serve(ctx context.Context, s Socket, opts Options) error {
	return serve(ctx, s, opts, &budget{shared: shared})
}

func serve(ctx context.Context, s Socket, opts Options, b *budget) error {
	ctx, cancel := context.WithCancel(ctx)
	m := &mux{opts: opts, sender: newSender(s.Write), budget: b, log: notices{log: opts.Log}, ctx: ctx, streams: map[string]*entry{}}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		m.sender.run()
		_ = s.Close() // what cannot be written ends it too
	}()
	err := m.read(s)
	cancel()
	stop()
	_ = s.Close()
	m.sender.close()
	m.endAll()
	m.work.Wait()
	<-sent
	m.log.end()
	return err
}

func (m *mux) read(s Socket) error {
	for {
		message, binary, err := s.Read()
		if err != nil {
			return err
		}
		if !binary {
			m.opts.Log.Debug().Msg("the rendezvous sent a text message, which means nothing")
			continue
		}
		f, err := Parse(message)
		if err != nil {
			m.opts.Log.Debug().Msg("the rendezvous sent what is no frame")
			continue
		}
		switch f.Kind {
		case Data:
			m.data(f)
		case Handshake:
			if err := m.handshake(f); err != nil && m.opts.Doubt {
				return ErrStranger
			}
			m.opts.Doubt = false
		case Reset:
			m.reset(f.StreamID)
		}
	}
}

// data takes a record to its stream.
func (m *mux) data(f Frame) {
	m.mu.Lock()
	e := m.streams[f.StreamID]
	early := e != nil && e.stream == nil
	if early {
		m.forget(f.StreamID, e)
	}
	m.mu.Unlock()
	if early {
		m.failed(f.StreamID, errEarly)
	}
	if e == nil || early {
		m.sendReset(f.StreamID)
		return
	}
	if err := e.stream.take(f.Seq, f.Payload); err != nil {
		m.abort(e.stream, err)
	}
}

// reset ends what a harness, or the rendezvous for it, gives up.
func (m *mux) reset(id string) {
	m.mu.Lock()
	e := m.streams[id]
	if e != nil {
		m.forget(id, e)
	}
	m.mu.Unlock()
	if e != nil && e.stream != nil {
		m.sender.drop(e.stream.lane)
		e.stream.end()
	}
}

// forget frees an id. m.mu is held.
func (m *mux) forget(id string, e *entry) {
	delete(m.streams, id)
	if e.stream == nil {
		e.cancel()
		return
	}
	m.open--
	m.count()
}

func (m *mux) count() {
	if m.opts.Count != nil {
		m.opts.Count(m.open)
	}
}

// abort ends a stream on which something went wrong, with a reset. Nothing of it is
// read or sent any more.
func (m *mux) abort(s *stream, why error) {
	if !m.release(s) {
		return
	}
	m.log.warn(s.id).Err(why).Msg("stream reset")
	m.sender.drop(s.lane)
	s.discard()
	s.end()
	m.sendReset(s.id)
}

// finish ends a stream whose connection was served. What it has said goes out
// before the reset.
func (m *mux) finish(s *stream) {
	if m.release(s) {
		_ = m.sender.send(s.lane, message(Frame{Kind: Reset, StreamID: s.id, Reason: resetReason}))
		s.end()
	}
}

// release frees a stream's id, if it is the stream's still.
func (m *mux) release(s *stream) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.streams[s.id]
	if e == nil || e.stream != s {
		return false
	}
	m.forget(s.id, e)
	return true
}

func (m *mux) endAll() {
	m.mu.Lock()
	all := m.streams
	m.streams = map[string]*entry{}
	for _, e := range all {
		if e.stream == nil {
			e.cancel()
		}
	}
	m.open = 0
	m.count()
	m.mu.Unlock()
	for _, e := range all {
		if e.stream != nil {
			e.stream.end()
		}
	}
}

func (m *mux) sendReset(id string) {
	m.sender.answer(message(Frame{Kind: Reset, StreamID: id, Reason: resetReason}))
}

// message is a frame as a WebSocket message.
func message(f Frame) []byte { return wsframe.AppendMasked(nil, wsframe.Binary, f.Append(nil)) }

// brief makes an id, which may be of anything and of any length, fit for a log.
func brief(id string) string {
	more := ""
	if len(id) > 40 {
		id, more = id[:40], "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(id, "?")) + more
}
