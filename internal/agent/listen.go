package agent

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/process"
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
		hello, err = proto.ParseHello(f.Body())
		switch {
		case err != nil:
		case hello.Count:
			err = c.WriteFrames(s.Counts().Frame())
		case hello.Farewell:
			s.Close()
			process.Confiner().Close()
		default:
			err = s.Serve(c, hello)
		}
	}
	_ = c.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "exec-agent: connection:", err)
	}
}
