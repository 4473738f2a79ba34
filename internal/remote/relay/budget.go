package relay

import (
	"errors"

	"golang.org/x/sync/semaphore"
)

// maxHeld bounds, in bytes, what all streams of the process hold of messages that
// are large and have not been read yet.
const maxHeld = 512 << 20

var errBudget = errors.New("too much waits to be read in all streams together")

// budget is memory for large messages. A stream that gets none ends: waiting for
// more would hold up the other streams of its socket.
type budget struct{ free *semaphore.Weighted }

// shared is the process's budget.
var shared = &budget{semaphore.NewWeighted(maxHeld)}

func (b *budget) take(n int64) bool { return b.free.TryAcquire(n) }

func (b *budget) give(n int64) {
	if n > 0 {
		b.free.Release(n)
	}
}
