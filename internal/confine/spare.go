package confine

import (
	"time"

	"golang.org/x/sys/unix"
)

// closePatience bounds how long Close waits for confined commands that have been
// killed to be gone, so that what stood in for their missing paths is too.
const closePatience = 3 * time.Second

// spares is how many cells are kept ready. With two, the next is made when a
// command has ended, in nobody's way, and the one that follows at once has its own.
const spares = 2

// take returns a cell, made just now if none is ready.
func (c *Confiner) take() (*cell, error) {
	c.mu.Lock()
	if last := len(c.spare) - 1; last >= 0 {
		defer c.mu.Unlock()
		ready := c.spare[last]
		c.spare = c.spare[:last]
		return ready, nil
	}
	c.mu.Unlock()
	return newCell(c.procs)
}

// prepare has cells made in the background, until a number of them is ready.
func (c *Confiner) prepare(ready int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spare) < ready && !c.busy && !c.closed {
		c.busy = true
		c.making.Go(func() { c.refill(ready) })
	}
}

func (c *Confiner) refill(ready int) {
	for keep := true; keep; {
		made, err := newCell(c.procs)
		c.mu.Lock()
		kept := err == nil && !c.closed
		if kept {
			c.spare = append(c.spare, made)
		}
		keep = kept && len(c.spare) < ready
		c.busy = keep
		c.mu.Unlock()
		if err == nil && !kept {
			made.end(c.procs)
		}
	}
}

// Sweep removes what earlier commands have left for the next: call it before
// anything is done that could see it. It costs nothing if there is nothing.
func (c *Confiner) Sweep() { c.marks.sweep() }

// Close gives up the cells that are kept ready, and all that is made ahead. What is
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
	for _, s := range spare {
		s.end(c.procs)
	}
	c.marks.sweep()
}
