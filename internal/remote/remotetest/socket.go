package remotetest

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/exec-server/exec-server/internal/remote/relay"
)

// maxMessage is the largest message between an executor and the rendezvous.
const maxMessage = 256 << 10

// socket is an executor's.
type socket struct {
	peer         *Peer
	env          string
	registration string
	ws           *websocket.Conn
	gate         *gate
	ctx          context.Context
	cancel       context.CancelFunc
	done         chan struct{} // closed when it has ended
	pings        atomic.Int64
	direct       chan []byte // messages of a direct connection; nil for noise

	streams map[string]*Stream // guarded by peer.mu
	taken   bool               // by a harness (direct); guarded by peer.mu
}

// upgrade serves the socket of an executor until it ends. Registrations that are
// not the latest are refused.
func (p *Peer) upgrade(w http.ResponseWriter, r *http.Request, id string) {
	_, answered := p.note(Upgrade, id, r)
	if p.fails(w, r, id, func(f *Faults) *Plan { return &f.Upgrade }, answered) {
		return
	}
	p.mu.Lock()
	e := p.envs[id]
	known := e != nil && r.URL.Query().Get("sig") == e.registration
	p.mu.Unlock()
	if !known {
		answered(http.StatusForbidden)
		refuse(w, http.StatusForbidden, "unknown_registration", "register first", "")
		return
	}
	s := &socket{peer: p, env: id, registration: e.registration, gate: gateOf(r), done: make(chan struct{}), streams: map[string]*Stream{}}
	if e.direct {
		s.direct = make(chan []byte)
	}
	s.ctx, s.cancel = context.WithCancel(p.ctx)
	defer s.cancel()
	answered(http.StatusSwitchingProtocols)
	var err error
	s.ws, err = websocket.Accept(w, r, &websocket.AcceptOptions{
		CompressionMode: websocket.CompressionDisabled,
		OnPingReceived: func(context.Context, []byte) bool {
			s.pings.Add(1)
			return !p.look(id).NoPongs
		},
	})
	if err != nil {
		p.strange("an upgrade: " + err.Error())
		return
	}
	s.ws.SetReadLimit(maxMessage)
	if e.direct {
		s.ws.SetReadLimit(-1)
	}
	stop := context.AfterFunc(s.ctx, func() { _ = s.gate.Close() }) // also if it is frozen
	defer stop()
	defer s.leave()
	if s.arrive() {
		s.read()
	}
}

// arrive makes the socket that of its environment, in place of an older one.
func (s *socket) arrive() bool {
	p := s.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.envs[s.env]
	if e.registration != s.registration {
		return false
	}
	if e.socket != nil {
		e.socket.cancel()
	}
	e.socket = s
	e.sockets++
	p.tell()
	return true
}

func (s *socket) leave() {
	s.cancel()
	_ = s.ws.CloseNow()
	s.peer.mu.Lock()
	defer s.peer.mu.Unlock()
	if e := s.peer.envs[s.env]; e.socket == s {
		e.socket = nil
	}
	s.peer.tell()
	close(s.done) // not earlier: who sees it opens another stream, and not here
}

func (s *socket) read() {
	for {
		kind, message, err := s.ws.Read(s.ctx)
		if err != nil {
			return
		}
		if s.direct != nil {
			if kind != websocket.MessageText {
				s.peer.strange("a direct message that is not text")
			}
			select {
			case s.direct <- message:
			case <-s.ctx.Done():
			}
			continue
		}
		f, err := relay.Parse(message)
		if err != nil || kind != websocket.MessageBinary || f.Kind != relay.Data && f.Kind != relay.Handshake && f.Kind != relay.Reset {
			s.peer.strange(fmt.Sprintf("a message of %d bytes that is no executor's frame", len(message)))
			continue
		}
		if s.peer.opts.OnFrame != nil {
			s.peer.opts.OnFrame(s.env, message, f)
		}
		_ = s.peer.pass(s.env, func(f *Faults) *Way { return &f.FromExecutor }, f, s.deliver)
	}
}

// deliver gives a frame to its stream, and waits until that has room. Frames for
// streams that are not there are dropped.
func (s *socket) deliver(f relay.Frame) error {
	s.peer.mu.Lock()
	st := s.streams[f.StreamID]
	s.peer.mu.Unlock()
	if st == nil {
		return nil
	}
	select {
	case st.in <- f:
	case <-st.closed:
	case <-s.ctx.Done():
	}
	return nil
}

// write sends one message as it is.
func (s *socket) write(kind websocket.MessageType, message []byte) error {
	return s.ws.Write(s.ctx, kind, message)
}
