// Package control is the daemon's local socket, through which other commands of
// the same program reach it: one request frame, one answer frame, and for some
// requests a connection to an environment after that.
package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// Throwaway describes the environment of one "run".
type Throwaway struct {
	Profile string
	Image   string   // "" is the profile's
	User    string   // "" is the profile's
	Cwd     string   // "" is the profile's
	Env     []string // NAME=VALUE, laid over the profile's
	Network string   // mode of the network policy; "" is the profile's
}

// Backend is the part of the daemon that the socket gives access to.
type Backend interface {
	// ServeThrowaway makes an environment, calls ready, serves the connection,
	// and removes the environment. An error before ready is the answer.
	ServeThrowaway(ctx context.Context, c proto.Conn, t Throwaway, ready func() error) error
	// AddEnvironment begins to serve an environment through a registry.
	AddEnvironment(ctx context.Context, a AddEnvironment) (Added, error)
	// RemoveEnvironment ends an environment, and returns when it is gone.
	RemoveEnvironment(ctx context.Context, name string) (Removed, error)
	// Environments lists all, by name.
	Environments(ctx context.Context) ([]Environment, error)
	// Policy tells about the network policy of an environment.
	Policy(ctx context.Context, name string) (Policy, error)
	// EditPolicy changes it. If it fails nothing has changed.
	EditPolicy(ctx context.Context, e EditPolicy) (Policy, error)
	// ExplainPolicy says what it decides about a connection.
	ExplainPolicy(ctx context.Context, q ExplainPolicy) (Explained, error)
}

// Server listens on the control socket.
type Server struct {
	l      *net.UnixListener
	closed context.Context // ends with Close
	cancel context.CancelFunc

	mu    sync.Mutex // held while a connection is counted, and while closing
	conns sync.WaitGroup
}

// Listen makes the socket, for the server's own user alone.
func Listen(path string) (*Server, error) {
	_ = os.Remove(path)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s := &Server{l: l}
	s.closed, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Serve answers until Close.
func (s *Server) Serve(ctx context.Context, b Backend) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.closed, cancel)()
	for {
		c, err := s.l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil { // too many open files, most likely
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if !s.start(func() { serveConn(ctx, c, b) }) {
			_ = c.Close()
			return
		}
	}
}

// start runs f as something that Close waits for, unless that was called.
func (s *Server) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Err() != nil {
		return false
	}
	s.conns.Go(f)
	return true
}

// Drain removes the socket and waits until whoever is connected has left.
func (s *Server) Drain() {
	_ = s.l.Close()
	s.conns.Wait()
}

// Close removes the socket, ends all connections and waits for them. It may be
// called at any time.
func (s *Server) Close() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	_ = s.l.Close()
	s.conns.Wait()
}

func serveConn(ctx context.Context, c *net.UnixConn, b Backend) {
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	serve(ctx, proto.NewStreamConn(c, proto.MaxRequest), b)
}

func serve(ctx context.Context, c proto.Conn, b Backend) {
	f, err := c.ReadFrame()
	if err != nil {
		return
	}
	m, err := proto.ParseMessage(f.Body())
	if err != nil || m.Kind != proto.Request {
		return
	}
	r := &request{c: c, b: b, id: m.ID.Clone(), body: f.Body()}
	handle, known := requests[m.Method]
	if !known {
		_ = c.WriteFrames(proto.ErrorFrame(r.id, proto.Errorf(proto.CodeUnknownMethod, "unknown control request %q", m.Method)))
		return
	}
	if err := handle(ctx, r); err != nil && !r.answered {
		_ = c.WriteFrames(proto.ErrorFrame(r.id, proto.Errorf(proto.CodeInternal, "%s", err)))
	}
}
