package agent

import (
	"sync"

	"github.com/exec-server/exec-server/internal/proto"
)

// serial works on one message after the other, in order. The reading goroutine
// does the work itself, unless it would have to wait: then a goroutine takes
// over until it has caught up, and reading goes on, so that the end of the
// connection is noticed.
type serial struct {
	c *conn

	mu      sync.Mutex // guards all below; not held while working
	busy    bool       // a goroutine has taken over
	backlog backlog[proto.Frame]
}

func newSerial(c *conn) *serial { return &serial{c: c} }

func (l *serial) take(f proto.Frame) {
	if l.queue(f) {
		return
	}
	r := l.c.receive(f)
	switch {
	case r == nil:
	case r.op.waits != nil && r.op.waits(l.c):
		l.mu.Lock()
		l.busy = true
		l.mu.Unlock()
		r.own()
		l.c.server.opts.Identity.Go(func() { l.catchUp(r) }, func(error) { l.c.end() })
	default:
		r.run()
	}
}

// queue queues the frame if something is being waited for.
func (l *serial) queue(f proto.Frame) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.busy && l.backlog.full() {
		if !l.backlog.awaitRoom(l.c, &l.mu) {
			return true
		}
	}
	if l.busy {
		l.backlog.push(own(f), len(f))
	}
	return l.busy
}

func (l *serial) catchUp(r *request) {
	for {
		if r != nil {
			r.run()
		}
		l.mu.Lock()
		f, ok := l.backlog.pop()
		if !ok || l.c.dropped.Load() {
			l.busy = false
			l.backlog.makeRoom()
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		r = l.c.receive(f)
	}
}

// parallel works on up to a number of messages at once; urgent ones and those
// that need no work do not count and do not wait.
type parallel struct {
	c *conn

	mu      sync.Mutex // guards all below; not held while working
	free    int
	backlog backlog[*request]
}

func newParallel(c *conn, n int) *parallel { return &parallel{c: c, free: n} }

func (l *parallel) take(f proto.Frame) {
	r := l.c.receive(own(f))
	if r == nil {
		return
	}
	if r.op.urgent {
		r.run()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.free == 0 && l.backlog.full() {
		if !l.backlog.awaitRoom(l.c, &l.mu) {
			return
		}
	}
	if l.free == 0 { // it may not be any more after a wait
		l.backlog.push(r, len(f))
		return
	}
	l.free--
	l.c.server.opts.Identity.Go(func() { l.work(r) }, func(error) { l.c.end() })
}

func (l *parallel) work(r *request) {
	for r != nil {
		r.run()
		r = l.next()
	}
}

func (l *parallel) next() *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.backlog.pop()
	if !ok || l.c.dropped.Load() {
		l.free++
		l.backlog.makeRoom()
		return nil
	}
	return r
}
