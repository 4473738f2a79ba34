package network

import (
	"net/netip"
	"sync"
	"time"
)

// patience is how long a connection upstream waits for the program's own, which
// its kernel makes at once unless the program has given up.
const patience = 10 * time.Second

// key is a connection as the program sees it.
type key struct{ from, to netip.AddrPort }

// book has the connections that were asked for and are not accepted yet.
type book struct {
	// drop ends a connection that nobody came for. No lock is held.
	drop func(*connection)

	mu      sync.Mutex // guards what follows
	entries map[key]*entry
	closed  bool
}

// entry is a connection in the making, and then one that waits.
type entry struct {
	ready *connection // nil in the making
	timer *time.Timer
}

// state is what is known of a connection when its first packet comes.
type state int

const (
	unknown state = iota
	making        // it is in the making: this packet is a repetition
	ready         // it waits: this packet may go on, as the first one did
)

func newBook(drop func(*connection)) *book {
	return &book{drop: drop, entries: map[key]*entry{}}
}

// begin notes that a connection is in the making, if it is not known.
func (b *book) begin(k key) state {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := b.entries[k]; {
	case e == nil:
		b.entries[k] = &entry{}
		return unknown
	case e.ready == nil:
		return making
	default:
		return ready
	}
}

// fail forgets a connection in the making.
func (b *book) fail(k key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.entries, k)
}

// put has a connection wait. It is false if the book is closed.
func (b *book) put(k key, c *connection) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	e := &entry{ready: c}
	e.timer = time.AfterFunc(patience, func() { b.expire(k, e) })
	b.entries[k] = e
	return true
}

// take returns the connection that waits, or nil. It is the caller's then.
func (b *book) take(k key) *connection {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[k]
	if e == nil || e.ready == nil {
		return nil
	}
	e.timer.Stop()
	delete(b.entries, k)
	return e.ready
}

func (b *book) expire(k key, e *entry) {
	b.mu.Lock()
	found := b.entries[k] == e
	if found {
		delete(b.entries, k)
	}
	b.mu.Unlock()
	if found {
		b.drop(e.ready)
	}
}

// close drops what waits, and takes nothing any more.
func (b *book) close() {
	b.mu.Lock()
	entries := b.entries
	b.entries, b.closed = map[key]*entry{}, true
	b.mu.Unlock()
	for _, e := range entries {
		if e.ready != nil {
			e.timer.Stop()
			b.drop(e.ready)
		}
	}
}
