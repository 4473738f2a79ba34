package containerd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/pkg/cio"

	"github.com/exec-server/exec-server/internal/runtime"
)

const (
	// taskTimeout bounds making and starting a container.
	taskTimeout = 30 * time.Second
	// copyTimeout bounds the copying of an image whose layers cannot be id-mapped.
	copyTimeout = 10 * time.Minute
	// answerTimeout bounds the agent's start.
	answerTimeout = 10 * time.Second
)

// ErrExists says that a sandbox of the name is there.
var ErrExists = errors.New("a sandbox of that name exists")

// Create implements runtime.Runtime.
func (r *Runtime) Create(ctx context.Context, spec runtime.Spec) (runtime.Sandbox, error) {
	s, err := r.create(r.with(ctx), spec)
	if err != nil {
		return nil, fmt.Errorf("create sandbox %s: %w", spec.Name, err)
	}
	return s, nil
}

func (r *Runtime) create(ctx context.Context, spec runtime.Spec) (_ *sandbox, err error) {
	if err := checkName(spec.Name); err != nil {
		return nil, err
	}
	if err := r.reserve(ctx, spec.Name); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	defer func() {
		if err != nil {
			r.forget(spec.Name)
		}
	}()
	image, config, err := r.image(ctx, spec.Image)
	if err != nil {
		return nil, err
	}
	env, err := r.envs.open(spec.Name, spec.Ephemeral)
	if err != nil {
		return nil, err
	}
	spec.Env, spec.AgentArgs = slices.Clone(spec.Env), slices.Clone(spec.AgentArgs)
	id := newID(spec.Name)
	p := &plan{id: id, spec: spec, image: config, env: env, state: r.stateDir(id), agent: r.agent, helper: r.helper, cgroup: r.cgroup}
	s, err := r.start(ctx, image, p)
	if err == nil {
		return s, nil
	}
	undo, cancel := r.lasting(ctx)
	defer cancel()
	err = errors.Join(err, r.purge(undo, id, p.task))
	if env.fresh || spec.Ephemeral {
		err = errors.Join(err, r.envs.remove(spec.Name))
	}
	return nil, err
}

// start makes the container and waits for its agent. What it leaves behind when
// it fails is for purge.
func (r *Runtime) start(ctx context.Context, image client.Image, p *plan) (*sandbox, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)() // Close need not wait long
	if err := p.state.make(hostname(p.spec.Name), p.env.ids(), p.spec.Network.Mode); err != nil {
		return nil, err
	}
	if err := r.certificate(p); err != nil {
		return nil, err
	}
	known := notes{Spec: p.spec, IDBase: p.env.IDBase}
	container, err := r.container(ctx, image, p, known)
	if err != nil {
		return nil, fmt.Errorf("make the container: %w", err)
	}

	ctx, cancel = context.WithTimeout(ctx, taskTimeout)
	defer cancel()
	log := &ring{}
	task, err := container.NewTask(ctx, cio.NewCreator(cio.WithStreams(nil, log, log), cio.WithFIFODir(p.state.fifos())))
	if err != nil {
		return nil, fmt.Errorf("make the container's task: %w", err)
	}
	p.task = task
	exit, err := task.Wait(r.ctx)
	if err != nil {
		return nil, fmt.Errorf("watch the container: %w", err)
	}
	s, err := r.newSandbox(known, task, log)
	if err != nil {
		return nil, err
	}
	if err := r.run(ctx, s, exit); err != nil {
		return nil, errors.Join(err, s.closeNetwork(), s.pidfd.Close())
	}
	return s, nil
}

// run lets the task of a sandbox begin, once its network policy is in force, and
// takes the sandbox up when its agent answers.
func (r *Runtime) run(ctx context.Context, s *sandbox, exit <-chan client.ExitStatus) error {
	if err := s.openNetwork(s.spec.Network); err != nil {
		return err
	}
	if err := s.task.Start(ctx); err != nil {
		return fmt.Errorf("start the container: %w", err)
	}
	if err := s.awaitAgent(ctx, exit, answerTimeout); err != nil {
		return err
	}
	return r.keep(s, exit)
}

// container makes the container's record and its file system. A lease keeps the
// latter from the garbage collector before the record is there; it is left to
// purge if that fails.
func (r *Runtime) container(ctx context.Context, image client.Image, p *plan, known notes) (client.Container, error) {
	limit := taskTimeout
	if !r.idmap {
		limit = copyTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx, release, err := r.client.WithLease(ctx, leases.WithID(p.id), leases.WithExpiration(time.Hour))
	if err != nil {
		return nil, err
	}
	c, err := r.client.NewContainer(ctx, p.id,
		client.WithSnapshotter(snapshotter),
		client.WithImage(image),
		r.withSnapshot(p.id, image, p.env.ids()),
		client.WithRuntime(r.shim.runtime, r.shim.options),
		client.WithContainerLabels(map[string]string{labelName: p.spec.Name, labelInstance: instance(r.opts.State)}),
		withNotes(known),
		client.WithNewSpec(p.opts()...))
	if err != nil {
		return nil, err
	}
	return c, release(ctx)
}
