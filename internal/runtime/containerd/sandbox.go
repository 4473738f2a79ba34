package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/v2/client"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/runtime"
)

// removeTimeout bounds a removal.
const removeTimeout = 60 * time.Second

// ErrEnded says that the sandbox is not running any more.
var ErrEnded = errors.New("the sandbox has ended")

// sandbox is a container whose agent has answered.
type sandbox struct {
	r     *Runtime
	spec  runtime.Spec
	ids   idRange
	task  client.Task
	pid   int // of the agent, on the host
	pidfd *os.File
	log   *ring
	way   *way // nil before it is open, and where there is none

	done chan struct{}
	end  func() // closes done, once

	leaving atomic.Bool // whether somebody has begun to remove the sandbox

	// removing holds a token while one caller removes the sandbox; removed is
	// that caller's to read and write.
	removing chan struct{}
	removed  bool
}

var _ runtime.Sandbox = (*sandbox)(nil)

// newSandbox returns the sandbox of a task that runs or is about to.
func (r *Runtime) newSandbox(n notes, task client.Task, log *ring) (*sandbox, error) {
	s := &sandbox{
		r: r, spec: n.Spec, ids: idRange{n.IDBase}, task: task, pid: int(task.Pid()), log: log,
		done:     make(chan struct{}),
		removing: make(chan struct{}, 1),
	}
	s.end = sync.OnceFunc(func() { close(s.done) })
	fd, err := unix.PidfdOpen(s.pid, 0)
	if err != nil {
		return nil, fmt.Errorf("open the agent's process: %w", err)
	}
	s.pidfd = os.NewFile(uintptr(fd), "pidfd")
	return s, nil
}

// Spec implements runtime.Sandbox.
func (s *sandbox) Spec() runtime.Spec {
	spec := s.spec
	spec.Env = slices.Clone(spec.Env)
	spec.AgentArgs = slices.Clone(spec.AgentArgs)
	return spec
}

// Done implements runtime.Sandbox.
func (s *sandbox) Done() <-chan struct{} { return s.done }

// Remove implements runtime.Sandbox.
func (s *sandbox) Remove(ctx context.Context) error {
	select {
	case s.removing <- struct{}{}:
		defer func() { <-s.removing }()
	case <-ctx.Done():
		return fmt.Errorf("remove sandbox %s: %w", s.spec.Name, ctx.Err())
	}
	if s.removed {
		return nil
	}
	s.leaving.Store(true)
	ctx, cancel := s.r.lasting(ctx)
	defer cancel()
	s.farewell(ctx)
	if err := errors.Join(s.closeNetwork(), forgetNetwork(s.r.envs.dir(s.spec.Name))); err != nil {
		s.r.opts.Log.Warn().Err(err).Str("environment", s.spec.Name).Msg("a network is not cleared up")
	}
	if err := s.r.purge(ctx, s.task.ID(), s.task); err != nil {
		return fmt.Errorf("remove sandbox %s: %w", s.spec.Name, err)
	}
	if s.spec.Ephemeral {
		if err := s.r.envs.remove(s.spec.Name); err != nil {
			return fmt.Errorf("remove sandbox %s: workspace: %w", s.spec.Name, err)
		}
	}
	s.removed = true
	s.end()
	s.pidfd.Close()
	s.r.forget(s.spec.Name)
	return nil
}
