package containerd

import (
	"context"
	"errors"

	"github.com/containerd/containerd/v2/client"
)

// errClosed says that Close was called.
var errClosed = errors.New("the runtime is closed")

// reserve takes the name for a sandbox that is going to be made. An earlier one
// that has ended is removed first. If it succeeds, Close waits until the caller
// has called r.tasks.Done.
func (r *Runtime) reserve(ctx context.Context, name string) error {
	for {
		r.mu.Lock()
		old, taken := r.sandboxes[name]
		if !taken {
			defer r.mu.Unlock()
			if r.ctx.Err() != nil {
				return errClosed
			}
			r.sandboxes[name] = nil
			r.tasks.Add(1)
			return nil
		}
		r.mu.Unlock()
		if old == nil {
			return ErrExists
		}
		select {
		case <-old.done:
		default:
			return ErrExists
		}
		if err := old.Remove(ctx); err != nil {
			return err
		}
	}
}

// forget frees a name.
func (r *Runtime) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sandboxes, name)
}

// keep takes up a sandbox and watches it. It fails if there is another of the
// name.
func (r *Runtime) keep(s *sandbox, exit <-chan client.ExitStatus) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return errClosed
	}
	if r.sandboxes[s.spec.Name] != nil {
		return ErrExists
	}
	r.sandboxes[s.spec.Name] = s
	r.tasks.Add(1)
	go s.watch(exit)
	return nil
}

// kept returns the sandboxes that are there: the ids of their containers, and
// the names of their environments.
func (r *Runtime) kept() (ids, names map[string]bool) {
	ids, names = map[string]bool{}, map[string]bool{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, s := range r.sandboxes {
		names[name] = true
		if s != nil {
			ids[s.task.ID()] = true
		}
	}
	return ids, names
}
