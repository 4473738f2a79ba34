package agent

import (
	"sync"

	"github.com/exec-server/exec-server/internal/proto"
)

// maxBacklog is how many messages may wait behind the ones worked on before the
// connection is not read any more.
const maxBacklog = 128

// serial works on one message after the other, in order. The reading goroutine
// does the work itself, unless it would have to wait: then a goroutine takes
// over until it has caught up, and reading goes on, so that the end of the
// connection is noticed.
type serial struct {
	c *conn

	mu      sync.Mutex // guards all below; not held while working
	busy    bool       // a goroutine has taken over
	backlog []proto.Frame
	room    *sync.Cond
}

func newSerial(c *conn) *serial {
	l := &serial{c: c}
	l.room = sync.NewCond(&l.mu)
	return l
}

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
	for l.busy && len(l.backlog) >= maxBacklog {
		l.room.Wait()
	}
	if l.busy {
		l.backlog = append(l.backlog, own(f))
	}
	return l.busy
}

func (l *serial) catchUp(r *request) {
	for {
		if r != nil {
			r.run()
		}
		l.mu.Lock()
		if len(l.backlog) == 0 {
			l.busy = false
			l.room.Broadcast()
			l.mu.Unlock()
			return
		}
		f := l.backlog[0]
		l.backlog = l.backlog[1:]
		l.room.Broadcast()
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
	backlog []*request
	room    *sync.Cond
}

func newParallel(c *conn, n int) *parallel {
	l := &parallel{c: c, free: n}
	l.room = sync.NewCond(&l.mu)
	return l
}

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
	for l.free == 0 && len(l.backlog) >= maxBacklog {
		l.room.Wait()
	}
	if l.free == 0 { // it may not be any more after a wait
		l.backlog = append(l.backlog, r)
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
	if len(l.backlog) == 0 {
		l.free++
		return nil
	}
	r := l.backlog[0]
	l.backlog = l.backlog[1:]
	l.room.Broadcast()
	return r
}
