package containerd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/v2/client"
	"golang.org/x/sys/unix"
)

// errImpostor says that what is at the socket's place is not the agent's.
var errImpostor = errors.New("the agent's socket has been replaced")

// Dial connects to the agent. The container's root owns the directory that the
// socket is in, so nothing there can be trusted: no link is followed, and what
// accepts must be PID 1 of the container.
func (s *sandbox) Dial(ctx context.Context) (*net.UnixConn, error) {
	c, err := s.dial(ctx)
	if err == nil {
		return c, nil
	}
	select {
	case <-s.done:
		err = ErrEnded
	default:
	}
	return nil, fmt.Errorf("connect to the agent of %s: %w", s.spec.Name, err)
}

func (s *sandbox) dial(ctx context.Context) (*net.UnixConn, error) {
	path := filepath.Join(s.r.stateDir(s.task.ID()).io(), "agent.sock")
	// The daemon made all but the last element, and the container cannot move
	// the directory. From here on it is this inode and no name.
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Uid != s.ids.base {
		return nil, errImpostor
	}
	c, err := dialUnix(ctx, fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, err
	}
	if pid, err := peer(c); err != nil || pid != s.pid {
		c.Close()
		return nil, errors.Join(errImpostor, err)
	}
	return c, nil
}

// dialUnix connects to a socket. While others wait to be accepted, it tries for
// two seconds.
func dialUnix(ctx context.Context, path string) (*net.UnixConn, error) {
	var d net.Dialer
	for patience := 2 * time.Second; ; patience -= 5 * time.Millisecond {
		c, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return c.(*net.UnixConn), nil
		}
		if !errors.Is(err, unix.EAGAIN) || patience <= 0 {
			return nil, errors.Unwrap(err) // without the path, which means nothing
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// peer returns the process that listens at the other end.
func peer(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// awaitAgent waits until the agent accepts. exit is what the task's Wait
// returned.
func (s *sandbox) awaitAgent(ctx context.Context, exit <-chan client.ExitStatus, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(wait*3/2, 20*time.Millisecond) {
		c, err := s.dial(ctx)
		if err == nil {
			return c.Close()
		}
		select {
		case status := <-exit:
			s.awaitLastWords()
			return fmt.Errorf("the agent exited with status %d before it answered%s", status.ExitCode(), s.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("the agent did not answer within %s: %w%s", limit, err, s.lastWords())
		case <-time.After(wait):
		}
	}
}

// awaitLastWords waits until all that an agent has said before it ended has
// arrived, for a second at most.
func (s *sandbox) awaitLastWords() {
	all := make(chan struct{})
	go func() {
		s.task.IO().Wait() // ends when the task is deleted, if not before
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(time.Second):
	}
}

// lastWords is the end of the agent's standard error, for an error message.
func (s *sandbox) lastWords() string {
	if tail := s.log.tail(); tail != "" {
		return ": " + tail
	}
	return ""
}
