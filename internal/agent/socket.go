package agent

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/hangup"
	"github.com/exec-server/exec-server/internal/proto"
)

// socketConn is a proto.Watcher over a socket.
type socketConn struct {
	*proto.StreamConn
	socket *socket
}

// AwaitEnd implements proto.Watcher.
func (c *socketConn) AwaitEnd(stop <-chan struct{}) bool {
	if err := c.socket.use(); err != nil {
		return true
	}
	defer c.socket.done()
	return hangup.Await(c.socket.fd, stop)
}

// socket is a connected socket whose calls block their thread: on the way of a
// request that is faster than a poller's detour.
type socket struct {
	fd int

	mu     sync.Mutex // guards all below
	users  int
	closed bool
}

// use keeps the descriptor's number ours while a call is under way.
func (s *socket) use() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	s.users++
	return nil
}

func (s *socket) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	if s.closed && s.users == 0 {
		_ = unix.Close(s.fd)
	}
}

// Read implements io.Reader.
func (s *socket) Read(p []byte) (int, error) {
	if err := s.use(); err != nil {
		return 0, err
	}
	defer s.done()
	for {
		n, err := unix.Read(s.fd, p)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n == 0 && err == nil {
			return 0, io.EOF
		}
		return max(n, 0), err
	}
}

// Write implements io.Writer.
func (s *socket) Write(p []byte) (int, error) {
	if err := s.use(); err != nil {
		return 0, err
	}
	defer s.done()
	for sent := 0; sent < len(p); {
		n, err := unix.Write(s.fd, p[sent:])
		if err != nil && !errors.Is(err, unix.EINTR) {
			return sent, err
		}
		sent += max(n, 0)
	}
	return len(p), nil
}

// Close wakes up whoever is in a call, and closes the descriptor after them.
func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.users == 0 {
		return unix.Close(s.fd)
	}
	return unix.Shutdown(s.fd, unix.SHUT_RDWR)
}
