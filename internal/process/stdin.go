package process

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// maxQueued is how many writes may wait for a command that does not read.
const maxQueued = 128

// maxQueuedBytes is how many bytes of them, beyond which no further write is
// taken.
const maxQueuedBytes = 16 << 20

// maxWriteIDs is how many accepted write ids are remembered.
const maxWriteIDs = 4096

var errStdinGone = proto.Errorf(proto.CodeInternal, "failed to write to process stdin")

// stdin feeds a command's standard input. Writes go straight into the pipe as
// long as it has room; what does not fit is left to a pump that runs only as
// long as there is something to wait for.
type stdin struct {
	mu sync.Mutex // guards all below; held over writes that cannot block

	fd      int  // -1 once it is closed
	ending  bool // it is to be closed behind what is queued
	queue   [][]byte
	queued  int // bytes in queue
	pumping bool
	room    chan struct{} // closed when the queue shrinks or ends; nil if nobody waits
	written map[string]struct{}
	order   []string // the keys of written, oldest first
}

// write queues data under an id that makes a repetition harmless. It waits while
// the queue is full, until one of the channels is closed.
func (s *stdin) write(id string, data []byte, done, cancel <-chan struct{}) error {
	for {
		wait, err := s.tryWrite(id, data)
		if wait == nil {
			return err
		}
		select {
		case <-wait:
		case <-done:
			return errStdinGone
		case <-cancel:
			return errStdinGone
		}
	}
}

// tryWrite returns a channel to wait for if there is no room.
func (s *stdin) tryWrite(id string, data []byte) (wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.written[id]; ok {
		return nil, nil
	}
	if s.fd < 0 || s.ending {
		return nil, errStdinGone
	}
	if !s.pumping {
		n, err := unix.Write(s.fd, data)
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return nil, errStdinGone
		}
		data = data[max(n, 0):]
	} else if s.fullLocked() {
		if s.room == nil {
			s.room = make(chan struct{})
		}
		return s.room, nil
	}
	if len(data) > 0 {
		s.queue = append(s.queue, data)
		s.queued += len(data)
		if err := s.startLocked(); err != nil {
			return nil, errStdinGone
		}
	}
	s.remember(id)
	return nil, nil
}

// fullLocked says whether a write has to wait.
func (s *stdin) fullLocked() bool {
	return s.pumping && (len(s.queue) >= maxQueued || s.queued >= maxQueuedBytes)
}

// startLocked starts the pump if it does not run. The pump gets a descriptor of
// its own, so that a close cannot hand its number to somebody else meanwhile.
func (s *stdin) startLocked() error {
	if s.pumping {
		return nil
	}
	own, err := unix.FcntlInt(uintptr(s.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		s.closeLocked()
		return err
	}
	s.pumping = true
	go s.pump(own)
	return nil
}

func (s *stdin) remember(id string) {
	if s.written == nil {
		s.written = make(map[string]struct{})
	}
	s.written[id] = struct{}{}
	s.order = append(s.order, id)
	if len(s.order) > maxWriteIDs {
		delete(s.written, s.order[0])
		s.order = s.order[1:]
	}
}

// accepted says whether a write with that id was accepted before.
func (s *stdin) accepted(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.written[id]
	return ok
}

// pump writes the queue out to a descriptor that it owns.
func (s *stdin) pump(fd int) {
	defer func() { _ = unix.Close(fd) }()
	for {
		data := s.next()
		if data == nil {
			return
		}
		for len(data) > 0 {
			n, err := unix.Write(fd, data)
			data = data[max(n, 0):]
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				err = s.awaitRoom(fd)
			}
			if err != nil {
				s.close()
				break
			}
		}
	}
}

// next takes the oldest write off the queue; nil means that the pump is done.
func (s *stdin) next() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
	if len(s.queue) == 0 || s.fd < 0 {
		s.pumping = false
		if s.ending {
			s.closeLocked()
		}
		return nil
	}
	data := s.queue[0]
	s.queued -= len(data)
	s.queue[0] = nil
	s.queue = s.queue[1:]
	return data
}

// awaitRoom waits until the pipe takes bytes. It looks up now and then, because
// a pipe that a stranger holds open does not tell that the command has ended.
func (s *stdin) awaitRoom(fd int) error {
	for {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, err := unix.Poll(p, 500); n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		s.mu.Lock()
		gone := s.fd < 0
		s.mu.Unlock()
		if gone {
			return errStdinGone
		}
	}
}

// finish ends standard input behind what is queued.
func (s *stdin) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	if !s.pumping {
		s.closeLocked()
	}
}

// close ends standard input; what is queued is dropped.
func (s *stdin) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked()
}

func (s *stdin) closeLocked() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
	s.queue, s.queued = nil, 0
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}
