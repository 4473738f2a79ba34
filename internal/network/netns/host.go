package netns

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Queue is a packet queue of the host's own namespace.
type Queue struct{ queue *queue }

// queues is how many numbers are tried.
const queues = 64

// OpenQueue opens a queue of the calling thread's namespace, of the first number that
// nobody has. decide is called with every packet that is sent there, and must not
// block. Packets that are no whole IP packets are dropped. The kernel drops what
// comes while there is no queue.
func OpenQueue(first uint16, decide func(*Packet)) (*Queue, error) {
	ask := func(q *queue, p queued) {
		flow, _, ok := parse(p.family, p.payload)
		if !ok {
			q.verdict(p.id, verdictDrop, 0)
			return
		}
		decide(&Packet{Flow: flow, Start: bytes.Clone(p.payload), queue: q, id: p.id})
	}
	for i := uint16(0); ; i++ {
		q := &queue{number: first + i, refusal: verdictDrop, ask: ask, tell: func(queued) {}}
		err := q.open(false, 0)
		taken := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EBUSY)
		switch {
		case err == nil:
			return &Queue{q}, nil
		case !taken || i == queues-1:
			return nil, err
		}
	}
}

// Number is the queue's.
func (q *Queue) Number() uint16 { return q.queue.number }

// Close drops the packets that wait. It must not be called by what decides.
func (q *Queue) Close() { q.queue.close() }

// Within runs f on a thread that is in the network namespace. The sockets that f
// makes stay there, whoever uses them later. f must not start goroutines that make
// some.
func Within(ns *os.File, f func() error) error { return within(ns, f) }
