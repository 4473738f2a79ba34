package containerd

import (
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
)

// watch waits for the task to end, and then removes the sandbox. exit is what
// the task's Wait returned.
func (s *sandbox) watch(exit <-chan client.ExitStatus) {
	defer s.r.tasks.Done()
	if !s.awaitExit(exit) {
		// The runtime was closed; the task may run on, and needs its pipes.
		s.task.IO().Cancel()
		if err := s.closeNetwork(); err != nil {
			s.r.opts.Log.Warn().Err(err).Str("environment", s.spec.Name).Send()
		}
		s.pidfd.Close()
		return
	}
	s.end()
	if !s.leaving.Load() {
		s.r.opts.Log.Info().Str("environment", s.spec.Name).Msg("a sandbox has ended by itself")
	}
	if err := s.Remove(s.r.ctx); err != nil {
		s.r.opts.Log.Warn().Err(err).Msg("a sandbox that has ended could not be removed")
	}
}

// awaitExit waits until the task has ended for certain. It returns false if the
// runtime was closed before.
func (s *sandbox) awaitExit(exit <-chan client.ExitStatus) bool {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		if exit != nil {
			status, ok := <-exit
			if ok && status.Error() == nil {
				return true
			}
		}
		// The connection to the shim or to containerd is gone, or the runtime
		// was closed. None of them says that the task has ended.
		if s.r.ctx.Err() != nil {
			return false
		}
		exit = nil
		status, err := s.task.Status(s.r.ctx)
		switch {
		case errdefs.IsNotFound(err):
			return true
		case err == nil && status.Status == client.Stopped:
			return true
		case err == nil:
			if exit, err = s.task.Wait(s.r.ctx); err == nil {
				continue
			}
			exit = nil
		}
		select {
		case <-time.After(wait):
		case <-s.r.ctx.Done():
			return false
		}
	}
}
