package confine

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrUnavailable says that this machine, or the way that the server was started,
// does not allow confinement. Nothing was run.
var ErrUnavailable = errors.New("confinement is not available here")

// Confiner confines commands and file work. It keeps a cell ready once the first
// has been needed.
type Confiner struct {
	procs processes
	marks markers

	mu     sync.Mutex // guards all below; not held while a cell is made
	spare  *cell
	making sync.WaitGroup // whoever makes the spare cell
	busy   bool           // somebody does
	closed bool
	active sync.WaitGroup // confinements that have not ended
	dark   int            // descriptor of a network namespace; 0 before it is needed
}

// closePatience bounds how long Close waits for confined commands that have been
// killed to be gone, so that what stood in for their missing paths is too.
const closePatience = 3 * time.Second

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
	if errors.Is(err, ErrUnavailable) && errors.Is(err, unix.EBUSY) {
		// A child on its way to execute something held a file for a moment.
		return c.tryStart(job, start)
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
		c.prepare()
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

// looks is how often the paths of a policy are looked up while they change.
const looks = 5

// arrange looks a view's paths up and mounts it. What stands in for missing
// paths is the caller's to release, also after an error.
func (c *Confiner) arrange(v *view, user User) (marks []*marker, err error) {
	// A mount that came in later would not be restricted.
	if err := propagation(unix.MS_PRIVATE); err != nil {
		return nil, err
	}
	for range looks {
		c.marks.release(marks)
		v.drop()
		v.steps, marks, err = v.policy.plan(&c.marks, user)
		if err == nil {
			err = v.capture()
		}
		if !errors.Is(err, unix.ENOENT) {
			break
		}
	}
	c.marks.sweep()
	defer v.drop()
	if err != nil {
		return marks, err
	}
	return marks, v.build()
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

// darkNetwork is a network namespace in which nothing is, not even a loopback
// that is up. All commands without the network share it: the filter lets none of
// them have an address in it, so that they cannot meet.
func (c *Confiner) darkNetwork() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dark != 0 {
		return c.dark, nil
	}
	made := make(chan error, 1)
	OnThread(func() {
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			c.dark, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		made <- err
	})
	if err := <-made; err != nil {
		return 0, fmt.Errorf("new network namespace: %w", err)
	}
	return c.dark, nil
}

// Files runs work on a thread that sees files as the policy says, with the
// user's rights and none beyond, and waits for it. The error, if it is not
// work's own, is as of Start.
func (c *Confiner) Files(job Job, work func() error) error {
	done := make(chan error, 1)
	var held []*marker
	OnThread(func() {
		err := c.confineFiles(job, &held)
		if refusal, ok := errors.AsType[*Refusal](err); ok {
			err = refusal
		} else if err != nil {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err == nil {
			err = work()
		}
		done <- err
	})
	err := <-done
	c.marks.release(held)
	return err
}

func (c *Confiner) confineFiles(job Job, held *[]*marker) error {
	if err := ownMounts(); err != nil {
		return err
	}
	blanks, err := newBlanks()
	if err != nil {
		return err
	}
	defer unix.Close(blanks)
	if err := unix.MoveMount(blanks, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount stand-ins: %w", err)
	}
	// /proc would lead to files as other threads of this process see them.
	below, others, err := procMounts()
	if err != nil {
		return err
	}
	for _, at := range append(others, below[:1]...) {
		if err := cover(blanks, at); err != nil {
			return err
		}
	}
	v := view{policy: job.Policy, blanks: blanks}
	if *held, err = c.arrange(&v, job.User); err != nil {
		return err
	}
	if err := job.User.Assume(); err != nil {
		return err
	}
	return keepCapabilities(func(int) bool { return false })
}

// take returns a cell, made just now if none is ready.
func (c *Confiner) take() (*cell, error) {
	c.mu.Lock()
	ready := c.spare
	c.spare = nil
	c.mu.Unlock()
	if ready != nil {
		return ready, nil
	}
	return newCell(c.procs)
}

// prepare has the next cell made, in the background.
func (c *Confiner) prepare() {
	c.mu.Lock()
	refill := c.spare == nil && !c.busy && !c.closed
	if refill {
		c.busy = true
		c.making.Go(c.refill)
	}
	c.mu.Unlock()
}

func (c *Confiner) refill() {
	made, err := newCell(c.procs)
	c.mu.Lock()
	c.busy = false
	keep := err == nil && !c.closed
	if keep {
		c.spare = made
	}
	c.mu.Unlock()
	if err == nil && !keep {
		made.end(c.procs)
	}
}

// Sweep removes what earlier commands have left for the next: call it before
// anything is done that could see it. It costs nothing if there is nothing.
func (c *Confiner) Sweep() { c.marks.sweep() }

// Close gives up the cell that is kept ready, and all that is made ahead. What is
// confined after it has to wait for its own.
func (c *Confiner) Close() {
	c.mu.Lock()
	spare := c.spare
	c.spare, c.closed = nil, true
	if c.dark != 0 {
		_ = unix.Close(c.dark)
		c.dark = 0
	}
	c.mu.Unlock()
	c.making.Wait()
	gone := make(chan struct{})
	go func() { c.active.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(closePatience):
	}
	if spare != nil {
		spare.end(c.procs)
	}
	c.marks.sweep()
}
