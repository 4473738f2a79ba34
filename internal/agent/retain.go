package agent

import (
	"sync"

	"github.com/exec-server/exec-server/internal/process"
)

// maxRetained is how many bytes of output of closed processes are kept, over all
// sessions: many short commands that print much would else take all memory
// within the time that each stays readable.
const maxRetained = 256 << 20

// retainer drops the output of the processes that closed longest ago when there
// is too much of it.
type retainer struct {
	mu     sync.Mutex // guards all below
	closed []*process.Process
	sizes  []int
	total  int
}

// add counts a process that has closed.
func (r *retainer) add(p *process.Process) {
	r.mu.Lock()
	size := p.Retained()
	r.closed, r.sizes = append(r.closed, p), append(r.sizes, size)
	r.total += size
	var drop []*process.Process
	for r.total > maxRetained {
		drop = append(drop, r.closed[0])
		r.removeLocked(0)
	}
	r.mu.Unlock()
	for _, p := range drop {
		p.DropOutput()
	}
}

// forget stops counting a process.
func (r *retainer) forget(p *process.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.closed { // the oldest are the first to be forgotten
		if r.closed[i] == p {
			r.removeLocked(i)
			return
		}
	}
}

func (r *retainer) removeLocked(i int) {
	r.total -= r.sizes[i]
	r.closed = append(r.closed[:i], r.closed[i+1:]...)
	r.sizes = append(r.sizes[:i], r.sizes[i+1:]...)
}
