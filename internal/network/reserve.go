package network

import (
	"context"
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

	mu      sync.Mutex // guards what follows, and the entries
	entries map[key]*entry
	closed  bool
}

// entry is a connection in the making, and then one that waits.
type entry struct {
	begun  time.Time
	cancel context.CancelFunc // ends the making
	held   verdict            // the latest packet, nil if it has its verdict
	ready  *connection        // nil in the making
	timer  *time.Timer        // ends the wait that is going on
	waits  int                // counts them
}

func newBook(drop func(*connection)) *book {
	return &book{drop: drop, entries: map[key]*entry{}}
}

// begin is told of each first packet. It returns true if the connection is to be
// made, which ends with put or fail; cancel is called if nobody waits for it.
func (b *book) begin(k key, v verdict, cancel context.CancelFunc) bool {
	b.mu.Lock()
	e := b.entries[k]
	if e != nil && e.ready != nil {
		b.mu.Unlock()
		v.Accept() // it waits, and this may go on as the packet before did
		return false
	}
	isNew := e == nil
	if isNew {
		e = &entry{begun: time.Now(), cancel: cancel}
		b.entries[k] = e
	}
	before := e.held
	e.held = v
	b.wait(e, holdTime, func() func() { return b.release(e) })
	b.mu.Unlock()
	if before != nil {
		before.Drop()
	}
	return isNew
}

// fail forgets a connection in the making, and returns the packet that waits for a
// verdict, if there is one.
func (b *book) fail(k key) verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[k]
	if e == nil {
		return nil
	}
	e.stop()
	delete(b.entries, k)
	return e.held
}

// put has a connection wait, and accepts the packet. It is false if the book is
// closed.
func (b *book) put(k key, c *connection) bool {
	b.mu.Lock()
	e := b.entries[k]
	if b.closed || e == nil {
		b.mu.Unlock()
		return false
	}
	v, most := e.held, patience
	if v == nil {
		most = max(most, e.next())
	}
	e.ready, e.held = c, nil
	b.wait(e, most, func() func() {
		delete(b.entries, k)
		return func() { b.drop(c) }
	})
	b.mu.Unlock()
	if v != nil {
		v.Accept()
	}
	return true
}

// take returns a connection that waits, or nil. It is the caller's then. The listener
// may see the program at another port than its first packet came from: the kernel changes
// that where the port has, or had a moment ago, a connection to another address, since to the
// listener both are the same. Then any that goes to the same address does, and
// whoever that was for gets another.
func (b *book) take(k key) *connection {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[k]
	if e == nil || e.ready == nil {
		k, e = b.alike(k)
	}
	if e == nil {
		return nil
	}
	e.stop()
	delete(b.entries, k)
	return e.ready
}

// alike finds one that waits, and differs by the program's port only. mu is held.
func (b *book) alike(k key) (key, *entry) {
	for other, e := range b.entries {
		if e.ready != nil && other.to == k.to && other.from.Addr() == k.from.Addr() {
			return other, e
		}
	}
	return k, nil
}

// close drops what waits, and takes nothing any more. What is in the making fails.
func (b *book) close() {
	b.mu.Lock()
	b.closed = true
	var waiting []*connection
	for k, e := range b.entries {
		if e.ready != nil {
			e.stop()
			delete(b.entries, k)
			waiting = append(waiting, e.ready)
		}
	}
	b.mu.Unlock()
	for _, c := range waiting {
		b.drop(c)
	}
}
