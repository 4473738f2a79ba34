package relay

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/noise"
	"github.com/exec-server/exec-server/internal/wsframe"
)

// maxWaiting is how many messages may wait in a stream.
const maxWaiting = 128

var errWaiting = fmt.Errorf("more than %d messages wait", maxWaiting)

// stream is a harness's connection. It implements proto.Watcher.
type stream struct {
	mux     *mux
	id      string
	channel *noise.Channel
	lane    *lane
	seq     uint32 // of the next record to send; the writer's

	in    chan waiting
	ended chan struct{}
	end   func() // closes ended, once

	mu    sync.Mutex // guards all below, and sending to in
	inbox inbox
	held  int64 // of the budget, for the frame that ReadFrame returned last
	dead  bool  // nothing is taken any more
	stall stall
}

type waiting struct {
	frame proto.Frame
	held  int64
}

func newStream(m *mux, id string, c *noise.Channel) *stream {
	s := &stream{mux: m, id: id, channel: c, lane: newLane(), in: make(chan waiting, maxWaiting), ended: make(chan struct{})}
	s.end = sync.OnceFunc(func() { close(s.ended) })
	s.inbox = inbox{channel: c, budget: m.budget, deliver: s.deliver}
	return s
}

// take takes a record, which it changes.
func (s *stream) take(seq uint32, record []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil
	}
	err := s.inbox.add(seq, record)
	s.stall.note(s.inbox.held > 0, s.checkStall)
	return err
}

// checkStall ends the stream if a message that holds something of the budget has
// not gone on for long.
func (s *stream) checkStall() {
	s.mu.Lock()
	stalled := !s.dead && s.stall.over()
	s.mu.Unlock()
	if stalled {
		s.mux.abort(s, errStalled)
	}
}

// deliver is called with s.mu held.
func (s *stream) deliver(m proto.Frame, held int64) error {
	select {
	case s.in <- waiting{m, held}:
		return nil
	default:
		s.mux.budget.give(held)
		return errWaiting
	}
}

// discard gives up what has not been read, and what will come.
func (s *stream) discard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
	s.stall.note(false, nil)
	s.inbox.drop()
	s.keep(0)
	for {
		select {
		case m := <-s.in:
			s.mux.budget.give(m.held)
		default:
			return
		}
	}
}

// keep gives back what the last frame held of the budget, and notes what the
// present one does. s.mu is held.
func (s *stream) keep(held int64) {
	s.mux.budget.give(s.held)
	s.held = held
}

// ReadFrame implements proto.Conn. What came before the end is read before the end.
func (s *stream) ReadFrame() (proto.Frame, error) {
	var m waiting
	select {
	case m = <-s.in:
	case <-s.ended:
		select {
		case m = <-s.in:
		default:
			return nil, io.EOF
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keep(m.held); s.dead {
		s.keep(0)
	}
	return m.frame, nil
}

// AwaitEnd implements proto.Watcher.
func (s *stream) AwaitEnd(stop <-chan struct{}) bool {
	select {
	case <-s.ended:
		return true
	case <-stop:
		return false
	}
}

// Close implements proto.Conn.
func (s *stream) Close() error {
	s.mux.finish(s)
	return nil
}

// WriteFrames implements proto.Conn.
func (s *stream) WriteFrames(frames []byte) error {
	var chunk []byte
	for len(frames) > 0 {
		var f proto.Frame
		if f, frames = proto.NextFrame(frames); f == nil {
			return io.ErrUnexpectedEOF
		}
		rest := f.Body()
		if len(rest) > proto.MaxRequest {
			s.mux.abort(s, fmt.Errorf("the environment sends a message of %d bytes", len(rest)))
			return errClosed
		}
		head := binary.BigEndian.AppendUint32(nil, uint32(len(rest)))
		for head != nil || len(rest) > 0 {
			n := min(len(rest), maxPlaintext-len(head))
			if len(chunk)+n > cap(chunk)-recordRoom-len(s.id) && chunk != nil {
				if err := s.mux.sender.send(s.lane, chunk); err != nil {
					return err
				}
				chunk = nil
			}
			if chunk == nil {
				// Room for many small ones, or one large.
				chunk = make([]byte, 0, max(n, min(n+len(frames), 16<<10))+2*(recordRoom+len(s.id)))
			}
			var err error
			if chunk, err = s.appendRecord(chunk, head, rest[:n]); err != nil {
				s.mux.abort(s, err)
				return err
			}
			head, rest = nil, rest[n:]
		}
	}
	if chunk == nil {
		return nil
	}
	return s.mux.sender.send(s.lane, chunk)
}

// recordRoom is more than a record's frames add, without the stream's id.
const recordRoom = 128

// appendRecord appends a WebSocket frame with a data frame with a record.
func (s *stream) appendRecord(dst, head, text []byte) ([]byte, error) {
	if s.seq == math.MaxUint32 {
		return dst, errExhausted
	}
	size := len(head) + len(text) + noise.Overhead
	prefix := appendDataHeader(make([]byte, 0, recordRoom+len(s.id)), s.id, s.seq, size)
	s.seq++
	dst, key := wsframe.BeginMasked(dst, wsframe.Binary, len(prefix)+size)
	start := len(dst)
	dst = append(dst, prefix...)
	plain := len(dst)
	dst = append(append(dst, head...), text...)
	dst, err := s.channel.Seal(dst[:plain], dst[plain:])
	if err != nil {
		return dst, err
	}
	key.Hide(dst[start:])
	return dst, nil
}
