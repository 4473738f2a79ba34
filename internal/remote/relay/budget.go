package relay

import (
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Messages that are large and have not been read yet are held within bounds, in
// bytes.
const (
	// ownHeld is what a socket may always hold, whatever others do: nobody keeps
	// another environment from being reached.
	ownHeld = 16 << 20
	// socketHeld is the most that a socket may hold.
	socketHeld = 256 << 20
	// maxHeld is the most that all sockets of the process hold beyond their own.
	maxHeld = 512 << 20
)

var errBudget = errors.New("too much waits to be read in all streams together")

// shared is the process's.
var shared = semaphore.NewWeighted(maxHeld)

// budget is a socket's memory for large messages. A stream that gets none ends:
// waiting for more would hold up the other streams of its socket.
type budget struct {
	shared *semaphore.Weighted

	mu   sync.Mutex // guards held
	held int64
}

func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	after := b.held + n
	if after > socketHeld || !b.shared.TryAcquire(beyond(after)-beyond(b.held)) {
		return false
	}
	b.held = after
	return true
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	after := b.held - n
	b.shared.Release(beyond(b.held) - beyond(after))
	b.held = after
}

// beyond is how much of n is not the socket's own.
func beyond(n int64) int64 { return max(0, n-ownHeld) }
