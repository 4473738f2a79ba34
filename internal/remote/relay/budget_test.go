package relay

import (
	"testing"

	"golang.org/x/sync/semaphore"
)

// However much some sockets hold, another can be used.
func TestNoSocketHoldsWhatIsAnothers(t *testing.T) {
	all := semaphore.NewWeighted(maxHeld)
	const step = 1 << 20
	fill := func(b *budget) (n int64) {
		for b.take(step) {
			n += step
		}
		return n
	}
	var hogs []*budget
	var held int64
	for range 4 {
		b := &budget{shared: all}
		n := fill(b)
		if hogs = append(hogs, b); n > socketHeld || n < ownHeld {
			t.Errorf("socket %d holds %d bytes", len(hogs), n)
		}
		held += n
	}
	if held != maxHeld+4*ownHeld {
		t.Errorf("together they hold %d bytes", held)
	}
	last := &budget{shared: all}
	if n := fill(last); n != ownHeld {
		t.Errorf("the last one holds %d bytes", n)
	}
	hogs[0].give(socketHeld)
	if n := fill(last); n != socketHeld-ownHeld {
		t.Errorf("after one has given all back the last holds %d bytes more", n)
	}
	for _, b := range append(hogs[1:], last) {
		for b.held > 0 {
			b.give(step)
		}
	}
	if !all.TryAcquire(maxHeld) {
		t.Error("not all was given back")
	}
}
