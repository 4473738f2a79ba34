package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/hangup"
	"github.com/exec-server/exec-server/internal/proto"
)

// Listen serves the gateway's connections on a unix socket until the socket
// fails. Only processes from outside the agent's PID namespace may connect:
// what runs inside must not get a second way to itself, past the limits of its
// command.
func (s *Server) Listen(path string) error {
	fd, err := listenUnix(path)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", path, err)
	}
	for {
		nfd, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED):
			continue
		case isShortage(err): // the connection waits until something has been closed
			_, _ = unix.Poll(nil, 10) // a first timer of the runtime's would need a descriptor
			continue
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		}
		if cred, err := unix.GetsockoptUcred(nfd, unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil || cred.Pid != 0 {
			_ = unix.Close(nfd)
			continue
		}
		if n := s.connections.Add(1); s.opts.MaxConnections > 0 && n > int64(s.opts.MaxConnections) {
			s.connections.Add(-1)
			_ = unix.Close(nfd)
			continue
		}
		go func() {
			defer s.connections.Add(-1)
			s.serveSocket(nfd)
		}()
	}
}

// isShortage tells whether a call failed for lack of something that comes back.
func isShortage(err error) bool {
	for _, no := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

func listenUnix(path string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	_ = os.Remove(path)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return -1, err
	}
	return fd, unix.Listen(fd, 128)
}

func (s *Server) serveSocket(fd int) {
	sock := &socket{fd: fd}
	c := &socketConn{proto.NewStreamConn(sock, proto.MaxRequest), sock}
	f, err := c.ReadFrame()
	if err == nil {
		var hello proto.Hello
		if hello, err = proto.ParseHello(f.Body()); err == nil {
			err = s.Serve(c, hello)
		}
	}
	_ = c.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "exec-agent: connection:", err)
	}
}

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
