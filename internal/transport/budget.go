package transport

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// smallMessage is the size up to which a connection's buffer counts for
	// nothing: so much, times maxConnections, is always there.
	smallMessage = 1 << 20
	// maxLarge bounds the buffers for larger messages of all connections together.
	maxLarge = 512 << 20
	// largePatience is how long a connection waits for its share. Its peer's data
	// stays in the kernel meanwhile. Then it is dropped: those that hold all there
	// is may never finish, and one that waits for them without end is no better off.
	largePatience = 10 * time.Second
	// largeStall is how long a peer may be silent within a large message, whose
	// room others could use.
	largeStall = 60 * time.Second
)

var errBudget = errors.New("too many large messages at once")

// share is what one connection's buffer takes of what is there for all of them.
type share struct {
	of   *semaphore.Weighted
	held atomic.Int64
}

// raise gets the share up to n bytes. One goroutine calls it.
func (s *share) raise(ctx context.Context, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, largePatience)
	defer cancel()
	more := n - s.held.Load()
	if s.of.Acquire(ctx, more) != nil {
		return errBudget
	}
	s.held.Add(more)
	return nil
}

// release gives it all back. Anybody may call it, at any time.
func (s *share) release() { s.of.Release(s.held.Swap(0)) }
