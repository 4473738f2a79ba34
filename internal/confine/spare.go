package confine

import (
	"time"

	"golang.org/x/sys/unix"
)

// closePatience bounds how long Close waits for confined commands that have been
// killed to be gone, so that what stood in for their missing paths is too.
const closePatience = 3 * time.Second

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
