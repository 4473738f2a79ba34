package network

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// direction is which way bytes go.
type direction int

const (
	in  direction = iota // towards the environment
	out                  // from it
)

// errVolume is that Limits.Bytes have passed.
var errVolume = errors.New("the volume is used up")

// budget is what an environment's limits leave. It is safe for concurrent use.
type budget struct {
	used atomic.Int64 // bytes in both directions
	now  atomic.Pointer[limits]
	// places are those of all environments.
	places *places

	mu       sync.Mutex // guards what follows
	open     int
	requests int
}

// limits are rules.Limits with what counts down; nil is without limit.
type limits struct {
	rules.Limits
	fresh *rate.Limiter
	bytes [2]*rate.Limiter
}

func newBudget(l rules.Limits, used int64) *budget {
	b := &budget{places: everybody()}
	b.used.Store(used)
	b.now.Store(&limits{})
	b.set(l)
	return b
}

// set changes the limits. What has not changed goes on counting where it is.
func (b *budget) set(l rules.Limits) {
	old := b.now.Load()
	next := &limits{Limits: l, fresh: old.fresh, bytes: old.bytes}
	if l.ConnectionsPerSecond != old.ConnectionsPerSecond {
		next.fresh = perSecond(int64(l.ConnectionsPerSecond))
	}
	if l.BytesPerSecond != old.BytesPerSecond {
		next.bytes = [2]*rate.Limiter{perSecond(l.BytesPerSecond), perSecond(l.BytesPerSecond)}
	}
	b.now.Store(next)
}

// perSecond has a burst of a second's worth.
func perSecond(n int64) *rate.Limiter {
	if n <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(n), int(n))
}

// enter takes a connection's place, which leave gives back. It is false if there
// is none.
func (b *budget) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open >= b.most() || !b.places.enter(b.open) {
		return false
	}
	b.open++
	return true
}

func (b *budget) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open--
	b.places.leave()
}

// connections returns how many places are taken.
func (b *budget) connections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// fresh tells whether a new connection may begin now.
func (b *budget) fresh() bool {
	l := b.now.Load().fresh
	return l == nil || l.Allow()
}

// most is how many connections there may be.
func (b *budget) most() int { return cmp.Or(b.now.Load().Connections, rules.UsualConnections) }

// request is told that a request begins, of which HTTP/2 has many on a connection: there
// may be as many as connections. It returns what is called at its end, or nil.
func (b *budget) request() (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.requests >= b.most() {
		return nil
	}
	b.requests++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.requests--
	}
}

// await waits until a new connection may begin.
func (b *budget) await(ctx context.Context) error {
	if l := b.now.Load().fresh; l != nil {
		return l.Wait(ctx)
	}
	return nil
}

// exhausted tells whether no byte may pass any more.
func (b *budget) exhausted() bool {
	most := b.now.Load().Bytes
	return most > 0 && b.used.Load() >= most
}

// take waits until bytes may pass, and returns how many of n, at least one. They
// count as passed. The error is errVolume or ctx's.
func (b *budget) take(ctx context.Context, d direction, n int) (int, error) {
	l := b.now.Load()
	if r := l.bytes[d]; r != nil {
		n = min(n, r.Burst())
		if err := r.WaitN(ctx, n); err != nil {
			return 0, err
		}
	}
	if l.Bytes == 0 {
		b.used.Add(int64(n))
		return n, nil
	}
	for {
		used := b.used.Load()
		if used >= l.Bytes {
			return 0, errVolume
		}
		n := min(int64(n), l.Bytes-used)
		if b.used.CompareAndSwap(used, used+n) {
			return int(n), nil
		}
	}
}
