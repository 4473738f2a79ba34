package network

import "time"

const (
	// holdTime is how long a first packet is kept in the kernel, where there is room
	// for some hundred. If it is dropped, the program's kernel sends it again when
	// at most as much time has passed again as since it was sent first, unless the
	// program has given up: there is no other sign of that.
	holdTime = 10 * time.Second
	slack    = 5 * time.Second
)

// wait has f called after d, if nothing else has happened until then. It is called
// with mu held, and what it returns is called without.
func (b *book) wait(e *entry, d time.Duration, f func() func()) {
	e.stop()
	this := e.waits
	e.timer = time.AfterFunc(d, func() {
		b.mu.Lock()
		if e.waits != this {
			b.mu.Unlock()
			return
		}
		then := f()
		b.mu.Unlock()
		then()
	})
}

// stop ends the wait that is going on.
func (e *entry) stop() {
	e.waits++
	if e.timer != nil {
		e.timer.Stop()
	}
}

// release lets go of a packet that was held for long, and has the making end if no
// other comes.
func (b *book) release(e *entry) func() {
	v := e.held
	e.held = nil
	b.wait(e, e.next(), func() func() { return e.cancel })
	return v.Drop
}

// next is in how much time the packet is sent again at most.
func (e *entry) next() time.Duration { return time.Since(e.begun) + slack }
