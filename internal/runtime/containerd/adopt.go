package containerd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"

	"github.com/exec-server/exec-server/internal/runtime"
)

// adoptTimeout is how long an agent that has been running may take to accept.
const adoptTimeout = 2 * time.Second

// Adopt implements runtime.Runtime. What cannot be removed is logged; the error
// is that containerd does not answer.
func (r *Runtime) Adopt(ctx context.Context) ([]runtime.Sandbox, error) {
	ctx = r.with(ctx)
	containers, err := r.client.Containers(ctx)
	if err != nil {
		return nil, fmt.Errorf("adopt sandboxes: list containers: %w", err)
	}
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex // guards adopted
		adopted  []runtime.Sandbox
		parallel = make(chan struct{}, 4)
	)
	for _, c := range containers {
		wg.Go(func() {
			parallel <- struct{}{}
			defer func() { <-parallel }()
			if s := r.adoptOrRemove(ctx, c); s != nil {
				mu.Lock()
				adopted = append(adopted, s)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	undo, cancel := r.lasting(ctx)
	defer cancel()
	if err := r.sweep(undo); err != nil {
		r.opts.Log.Warn().Err(err).Msg("not all that an earlier daemon left could be removed")
	}
	return adopted, nil
}

// adoptOrRemove returns the container's sandbox; nil if it had to be removed or
// is not ours.
func (r *Runtime) adoptOrRemove(ctx context.Context, c client.Container) *sandbox {
	labels, err := c.Labels(ctx)
	name := labels[labelName]
	log := r.opts.Log.With().Str("container", c.ID()).Str("environment", name).Logger()
	// In a containerd of our own, everything is ours.
	if name == "" || r.opts.Server == nil && labels[labelInstance] != instance(r.opts.State) {
		log.Warn().Err(err).Msg("there is a container that this exec-server has not made; it is left alone")
		return nil
	}
	limited, stop := context.WithTimeout(ctx, taskTimeout)
	defer stop()
	s, err := r.adopt(limited, name, c)
	if err == nil {
		return s
	}
	log.Info().Err(err).Msg("a sandbox of an earlier daemon is removed")
	undo, cancel := r.lasting(ctx)
	defer cancel()
	if err := r.purge(undo, c.ID(), nil); err != nil {
		log.Warn().Err(err).Msg("a sandbox of an earlier daemon could not be removed")
	}
	return nil
}

// adopt returns the sandbox of a container that runs and answers.
func (r *Runtime) adopt(ctx context.Context, name string, c client.Container) (_ *sandbox, err error) {
	n, err := notesOf(ctx, c)
	if err != nil {
		return nil, err
	}
	if checkName(name) != nil || n.Spec.Name != name {
		return nil, fmt.Errorf("its notes are for %q", n.Spec.Name)
	}
	if n.Spec.OneClient {
		return nil, errors.New("it was for a client of that daemon")
	}
	if record, err := r.envs.read(name); err != nil || record.IDBase != n.IDBase {
		return nil, errors.Join(errors.New("its environment is not the one on disk"), err)
	}
	log := &ring{}
	task, err := c.Task(ctx, cio.NewAttach(cio.WithStreams(nil, log, log)))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && task.IO() != nil {
			task.IO().Cancel()
			task.IO().Close()
		}
	}()
	if status, err := task.Status(ctx); err != nil || status.Status != client.Running {
		return nil, errors.Join(fmt.Errorf("its task is not running but %q", status.Status), err)
	}
	exit, err := task.Wait(r.ctx)
	if err != nil {
		return nil, fmt.Errorf("watch the container: %w", err)
	}
	s, err := r.newSandbox(n, task, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeNetwork(), s.pidfd.Close())
		}
	}()
	// Its commands wait for their network.
	if err := s.reopenNetwork(); err != nil {
		return nil, err
	}
	if err := s.awaitAgent(ctx, exit, adoptTimeout); err != nil {
		return nil, err
	}
	return s, r.keep(s, exit)
}
