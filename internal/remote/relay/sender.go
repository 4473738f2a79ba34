package relay

import (
	"errors"
	"sync"
)

const (
	// laneSize is how many bytes of a stream wait to be sent before its writer
	// waits too.
	laneSize = 128 << 10
	// maxControl and maxControlBytes bound the frames that answer frames, with ids of
	// any length. Then no more are read.
	maxControl      = 256
	maxControlBytes = 1 << 20
)

var errClosed = errors.New("the socket to the rendezvous has ended")

// sender sends what all streams of a socket have to say: chunks of whole frames.
// Streams take turns, so that an answer waits for one chunk of each other stream at
// most, and frames that answer frames go first.
type sender struct {
	write func(chunk []byte) error

	mu      sync.Mutex // guards all below, and what is in each lane; not held while writing
	control [][]byte
	bytes   int     // in control
	ready   []*lane // those that have something, in turn
	writing bool
	closed  bool

	wake  chan struct{} // has one when run has something to do
	space chan struct{} // has one when control may have room
	done  chan struct{} // closed with closed
}

// lane is what a stream has to send.
type lane struct {
	chunks [][]byte
	size   int
	ended  bool          // nothing more is taken
	space  chan struct{} // has one when there may be room
}

func newSender(write func([]byte) error) *sender {
	return &sender{write: write, wake: make(chan struct{}, 1), space: make(chan struct{}, 1), done: make(chan struct{})}
}

func newLane() *lane { return &lane{space: make(chan struct{}, 1)} }

// send sends a chunk of a stream, or leaves it to be sent. It waits while too much
// of the stream waits.
func (s *sender) send(l *lane, chunk []byte) error {
	s.mu.Lock()
	for l.size >= laneSize && !s.closed && !l.ended {
		s.mu.Unlock()
		select {
		case <-l.space:
		case <-s.done:
		}
		s.mu.Lock()
	}
	if s.closed || l.ended {
		s.mu.Unlock()
		return errClosed
	}
	if !s.writing && len(s.ready) == 0 && len(s.control) == 0 {
		// Nobody is in the way: spare the change of goroutines.
		s.writing = true
		s.mu.Unlock()
		err := s.write(chunk)
		s.mu.Lock()
		s.writing = false
		more := len(s.ready) > 0 || len(s.control) > 0
		s.mu.Unlock()
		if more {
			signal(s.wake)
		}
		if err != nil {
			s.close()
		}
		return err
	}
	if len(l.chunks) == 0 {
		s.ready = append(s.ready, l)
	}
	l.chunks = append(l.chunks, chunk)
	l.size += len(chunk)
	s.mu.Unlock()
	signal(s.wake)
	return nil
}

// answer sends a frame that answers a frame.
func (s *sender) answer(chunk []byte) {
	s.mu.Lock()
	for (len(s.control) >= maxControl || s.bytes >= maxControlBytes) && !s.closed {
		s.mu.Unlock()
		select {
		case <-s.space:
		case <-s.done:
		}
		s.mu.Lock()
	}
	s.control = append(s.control, chunk)
	s.bytes += len(chunk)
	s.mu.Unlock()
	signal(s.wake)
}

// drop forgets what a stream has to send, and takes no more.
func (s *sender) drop(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.ended = true
	for i, r := range s.ready {
		if r == l {
			s.ready = append(s.ready[:i:i], s.ready[i+1:]...)
			break
		}
	}
	l.chunks, l.size = nil, 0
	signal(l.space)
}

// run sends what send and answer leave, until a write fails or close is called.
func (s *sender) run() {
	for {
		chunk := s.next()
		if chunk == nil {
			select {
			case <-s.wake:
				continue
			case <-s.done:
				return
			}
		}
		err := s.write(chunk)
		s.mu.Lock()
		s.writing = false
		s.mu.Unlock()
		if err != nil {
			s.close()
			return
		}
	}
}

// next takes the chunk whose turn it is; nil if there is none, or somebody writes,
// who then wakes run.
func (s *sender) next() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing || s.closed {
		return nil
	}
	var chunk []byte
	switch {
	case len(s.control) > 0:
		chunk, s.control = s.control[0], s.control[1:]
		s.bytes -= len(chunk)
		signal(s.space)
	case len(s.ready) > 0:
		l := s.ready[0]
		s.ready = s.ready[1:]
		chunk, l.chunks = l.chunks[0], l.chunks[1:]
		l.size -= len(chunk)
		if len(l.chunks) > 0 {
			s.ready = append(s.ready, l)
		}
		signal(l.space)
	default:
		return nil
	}
	s.writing = true
	return chunk
}

func (s *sender) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
