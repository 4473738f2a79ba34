package agent

import (
	"sync"

	"github.com/exec-server/exec-server/internal/proto"
)

// maxUnsent is how many bytes of notifications wait for a slow peer before the
// commands that print them are held up.
const maxUnsent = 256 << 10

// maxUnread is how many bytes of answers wait for a slow peer before no more of
// its requests are worked on.
const maxUnread = 4 << 20

// outbox sends frames from many goroutines over one connection. Whoever finds
// it idle writes to the connection itself, which spares a short answer the way
// over another goroutine; what comes meanwhile is queued and drained by a
// goroutine that lives as long as the queue. Answers pass notifications.
type outbox struct {
	conn proto.Conn

	mu            sync.Mutex // guards all below; never held over a write
	writing       bool       // somebody is writing, and looks at the queues after
	dead          bool
	answers       []byte
	notifications []byte
	room          *sync.Cond // in the queues
}

func newOutbox(c proto.Conn) *outbox {
	o := &outbox{conn: c}
	o.room = sync.NewCond(&o.mu)
	return o
}

// answer sends frames ahead of all queued notifications.
func (o *outbox) answer(frames []byte) { o.send(frames, &o.answers, maxUnread) }

// notify sends frames.
func (o *outbox) notify(frames []byte) { o.send(frames, &o.notifications, maxUnsent) }

// send writes or queues frames. It waits while the peer is too slow.
func (o *outbox) send(frames []byte, queue *[]byte, limit int) {
	o.mu.Lock()
	for o.writing && !o.dead && len(*queue) >= limit {
		o.room.Wait()
	}
	if o.dead {
		o.mu.Unlock()
		return
	}
	if o.writing {
		*queue = append(*queue, frames...)
		o.mu.Unlock()
		return
	}
	o.write(frames)
}

// write is called with mu held and gives it up.
func (o *outbox) write(frames []byte) {
	o.writing = true
	o.mu.Unlock()
	err := o.conn.WriteFrames(frames)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.dieLocked()
	}
	if len(o.answers)+len(o.notifications) > 0 {
		go o.drain()
	} else {
		o.writing = false
	}
}

func (o *outbox) drain() {
	for {
		batch := o.next()
		if batch == nil {
			return
		}
		if err := o.conn.WriteFrames(batch); err != nil {
			o.close()
		}
	}
}

func (o *outbox) next() (batch []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case len(o.answers) > 0:
		batch, o.answers = o.answers, nil
		o.room.Broadcast()
	case len(o.notifications) > 0:
		batch, o.notifications = o.notifications, nil
		o.room.Broadcast()
	default:
		o.writing = false
	}
	return batch
}

// close ends the connection; nothing is sent from now on.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dieLocked()
}

func (o *outbox) dieLocked() {
	if o.dead {
		return
	}
	o.dead = true
	o.answers, o.notifications = nil, nil
	o.room.Broadcast()
	_ = o.conn.Close() // does not block
}
