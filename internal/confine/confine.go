package confine

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrUnavailable says that this machine, or the way that the server was started,
// does not allow confinement. Nothing was run.
var ErrUnavailable = errors.New("confinement is not available here")

// Confiner confines commands and file work. It keeps cells ready once the first has
// been needed.
type Confiner struct {
	procs processes
	marks markers

	mu     sync.Mutex // guards all below; not held while a cell is made
	spare  []*cell
	making sync.WaitGroup // whoever makes spare cells
	busy   bool           // somebody does
	closed bool
	active sync.WaitGroup // confinements that have not ended
	dark   int            // descriptor of a network namespace; 0 before it is needed
}

// New returns a Confiner. fork runs a function that starts a child process, such
// that nobody else reaps the child; wait reaps it.
func New(fork func(func() (int, error)) (int, error), wait func(pid int)) *Confiner {
	return &Confiner{procs: processes{fork, wait}}
}

// Job is what to confine.
type Job struct {
	Policy *Policy
	// User is who the work is done for. What the policy grants is looked up with
	// the user's rights, what it takes away with the agent's own.
	User User
	// Guard says that commands must not get what the agent has over a usual
	// container.
	Guard bool
	// Listen opens the command's proxy's sockets, if the policy leaves a way out to
	// it: it runs on a thread whose loopback is the command's, before start.
	Listen func() error
	// Terminal is the number of the command's terminal in /dev/pts, or -1.
	Terminal int
}

// User gives the calling thread the file rights of a user, and takes them back.
type User interface {
	Assume() error
	Resume() error
	// Owner is whose new files are; -1 leaves them to the agent.
	Owner() (uid, gid int)
}

// Confinement is what a confined command holds while it runs.
type Confinement struct {
	c     *Confiner
	cell  *cell // nil if the command shares the agent's namespaces
	marks []*marker
	ended bool
}

// Start confines a thread by the policy and runs start on it, to start a command
// from there. What start returns is returned as it is; errors of confinement are
// a *Refusal or wrap ErrUnavailable. After success the Confinement must be
// ended.
func (c *Confiner) Start(job Job, start func() error) (*Confinement, error) {
	held, err := c.tryStart(job, start)
	for range looks {
		// A child on its way to execute something held a file for a moment; or
		// something went while it was mounted on.
		if !errors.Is(err, ErrUnavailable) || !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOENT) {
			break
		}
		held, err = c.tryStart(job, start)
	}
	return held, err
}

func (c *Confiner) tryStart(job Job, start func() error) (*Confinement, error) {
	held := &Confinement{c: c}
	c.active.Add(1)
	done := make(chan error, 1)
	work := func() { done <- c.confined(job, held, start) }
	if job.Policy.restricted {
		cell, err := c.take()
		if err != nil {
			held.End()
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		held.cell = cell
		cell.work <- work
	} else {
		OnThread(work)
	}
	err := <-done
	if held.cell != nil {
		// Not earlier, as it would be in this command's way.
		c.prepare(1)
	}
	if err != nil {
		held.End()
		return nil, err
	}
	return held, nil
}

// Visible says that something is there for others to see until End.
func (h *Confinement) Visible() bool { return h != nil && len(h.marks) > 0 }

// End takes down what the command left running, and returns when it is gone. It
// may be called more than once, and on nil.
func (h *Confinement) End() {
	if h == nil {
		return
	}
	if h.cell != nil {
		h.c.prepare(spares)
		h.cell.end(h.c.procs)
		h.cell = nil
	}
	h.c.marks.release(h.marks)
	h.marks = nil
	if !h.ended {
		h.ended = true
		h.c.active.Done()
	}
}

// confined runs on the thread to confine.
func (c *Confiner) confined(job Job, held *Confinement, start func() error) error {
	if err := c.confine(job, held); err != nil {
		if refusal, ok := errors.AsType[*Refusal](err); ok {
			return refusal
		}
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return start()
}

func (c *Confiner) confine(job Job, held *Confinement) error {
	p := job.Policy
	if held.cell != nil {
		if err := c.enter(held.cell, job); err != nil {
			return err
		}
		if job.Terminal >= 0 {
			if err := held.cell.console(job.Terminal); err != nil {
				return err
			}
		}
	}
	if held.cell != nil {
		v := view{policy: p, blanks: held.cell.blanks, devices: true}
		var err error
		if held.marks, err = c.arrange(&v, job.User); err != nil {
			return err
		}
	} else if err := noNewPrivileges(); err != nil {
		return err
	}
	if err := job.User.Assume(); err != nil {
		return err
	}
	return programs()[purpose{job.Guard, p.network}].install()
}

// enter puts the calling thread, which must be the cell's, into the namespaces
// of the processes that it starts.
func (c *Confiner) enter(cell *cell, job Job) error {
	if err := unix.Setns(cell.pidfd, unix.CLONE_NEWPID|unix.CLONE_NEWIPC); err != nil {
		return fmt.Errorf("enter namespaces: %w", err)
	}
	switch job.Policy.network {
	case noNetwork:
		dark, err := c.darkNetwork()
		if err != nil {
			return err
		}
		if err := unix.Setns(dark, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("leave the network: %w", err)
		}
	case proxied, proxiedUnix:
		if err := ownNetwork(); err != nil {
			return err
		}
		return job.Listen()
	}
	return nil
}
