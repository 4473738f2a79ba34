package containerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// drainTime is how long an agent may go on answering after the peer has said
// that it will send no more.
const drainTime = 5 * time.Second

// errPeer is what the peer's side of a connection ended with.
type errPeer struct{ error }

// Serve implements runtime.Sandbox. It returns nil if either side ended in an
// orderly manner, and ErrEnded if the sandbox ended.
//
// While an agent does not read, Serve does not read from c; if c is a
// proto.Watcher it notices the end of c all the same. When Serve returns, a
// goroutine of it may still be in c.ReadFrame or c.AwaitEnd; it ends as soon as
// the caller closes c, and what it has read by then is lost.
func (s *sandbox) Serve(ctx context.Context, c proto.Conn, hello proto.Hello) error {
	agent, err := s.Dial(ctx)
	if err != nil {
		return err
	}
	defer agent.Close()
	defer context.AfterFunc(ctx, func() { agent.Close() })()
	up := make(chan error, 1)
	if _, err = agent.Write(hello.Frame()); err == nil {
		go pumpUp(c, agent, up)
		err = pumpDown(c, agent)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("serve %s: %w", s.spec.Name, context.Cause(ctx))
	}
	var peer errPeer
	select {
	case peer.error = <-up:
	default:
		errors.As(err, &peer)
	}
	switch {
	case errors.Is(peer.error, io.EOF):
		return nil
	case peer.error != nil:
		return fmt.Errorf("serve %s: %w", s.spec.Name, peer)
	case s.died():
		return fmt.Errorf("serve %s: %w", s.spec.Name, ErrEnded)
	case errors.Is(err, io.EOF):
		return nil
	}
	return fmt.Errorf("serve %s: agent: %w", s.spec.Name, err)
}

// pumpUp sends the peer's frames to the agent until one of them ends. If it is
// the peer, it first says so in up, and then ends the agent's connection.
func pumpUp(c proto.Conn, agent *net.UnixConn, up chan<- error) {
	for {
		f, err := c.ReadFrame()
		if errors.Is(err, io.EOF) {
			up <- err
			// Answers may be under way.
			_ = agent.SetReadDeadline(time.Now().Add(drainTime))
			_ = agent.CloseWrite()
			return
		}
		if err != nil {
			up <- err
			agent.Close()
			return
		}
		if sendUp(c, agent, f, up) != nil {
			return // the agent's end shows in pumpDown
		}
	}
}

// stallTime is how long an agent may take to read before the peer is watched.
const stallTime = 100 * time.Millisecond

// sendUp writes a frame to the agent. If the agent does not read for a while and
// the peer ends meanwhile, it says so in up and ends the agent's connection, whatever
// of the peer's is still under way.
func sendUp(c proto.Conn, agent *net.UnixConn, f proto.Frame, up chan<- error) error {
	_ = agent.SetWriteDeadline(time.Now().Add(stallTime))
	n, err := agent.Write(f)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	_ = agent.SetWriteDeadline(time.Time{})
	written, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		if w, ok := c.(proto.Watcher); ok && w.AwaitEnd(written) {
			up <- io.EOF
			agent.Close()
		}
	}()
	_, err = agent.Write(f[n:])
	close(written)
	<-watched
	return err
}

// pumpDown sends the agent's frames to the peer until one of them ends.
func pumpDown(c proto.Conn, agent *net.UnixConn) error {
	from := proto.NewStreamConn(agent, proto.MaxAnswer)
	for {
		frames, err := from.ReadFrames()
		if err != nil {
			return err
		}
		if err := c.WriteFrames(frames); err != nil {
			return errPeer{err}
		}
	}
}

// died tells whether the agent's process is gone. Its connections end a moment
// before it does.
func (s *sandbox) died() bool {
	select {
	case <-s.done:
		return true
	default:
	}
	gone := s.gone(50)
	if gone {
		select {
		case <-s.done:
		case <-time.After(2 * time.Second):
		}
	}
	return gone
}

// farewellTime bounds how long an agent may take to clear up.
const farewellTime = 2 * time.Second

// farewell lets the agent clear up what it has made in the workspace. It is about
// to be killed, so that nothing depends on its answer.
func (s *sandbox) farewell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewellTime)
	defer cancel()
	agent, err := s.dial(ctx)
	if err != nil {
		return
	}
	defer agent.Close()
	defer context.AfterFunc(ctx, func() { agent.Close() })()
	if _, err := agent.Write(proto.Hello{Concurrency: 1, Farewell: true}.Frame()); err == nil {
		_, _ = agent.Read(make([]byte, 1))
	}
}
