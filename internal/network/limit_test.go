package network

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// The first second's worth passes at once, the rest at its pace, each way.
func TestBytesPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(rules.Limits{BytesPerSecond: 1000}, 0)
		start := time.Now()
		pass := func(d direction, n int) time.Duration {
			for n > 0 {
				granted, err := b.take(t.Context(), d, n)
				if err != nil || granted < 1 {
					t.Fatal(granted, err)
				}
				n -= granted
			}
			return time.Since(start).Round(time.Millisecond)
		}
		if at := pass(in, 1000); at != 0 {
			t.Errorf("the first second's worth passed at %s", at)
		}
		if at := pass(in, 2500); at != 2500*time.Millisecond {
			t.Errorf("the rest passed at %s", at)
		}
		if at := pass(out, 1000); at != 2500*time.Millisecond {
			t.Errorf("the other direction's passed at %s", at)
		}
		b.set(rules.Limits{})
		if at := pass(in, 1<<20); at != 2500*time.Millisecond {
			t.Errorf("without a limit it passed at %s", at)
		}
		if used := b.used.Load(); used != 1000+2500+1000+1<<20 {
			t.Errorf("used %d", used)
		}
	})
}

func TestBytesPerSecondEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(rules.Limits{BytesPerSecond: 1}, 0)
		_, _ = b.take(t.Context(), in, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.take(ctx, in, 1); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestVolume(t *testing.T) {
	b := newBudget(rules.Limits{Bytes: 100}, 30)
	if n, err := b.take(t.Context(), in, 50); n != 50 || err != nil {
		t.Error(n, err)
	}
	if b.exhausted() {
		t.Error("exhausted early")
	}
	if n, err := b.take(t.Context(), out, 50); n != 20 || err != nil {
		t.Error(n, err)
	}
	if n, err := b.take(t.Context(), out, 50); n != 0 || !errors.Is(err, errVolume) || !b.exhausted() {
		t.Error(n, err)
	}
	b.set(rules.Limits{Bytes: 101})
	if n, err := b.take(t.Context(), out, 50); n != 1 || err != nil || b.exhausted() == false {
		t.Error(n, err)
	}
}

// times counts how often something goes well.
func times(f func() bool) (n int) {
	for f() {
		n++
	}
	return n
}

func TestConnections(t *testing.T) {
	b := newBudget(rules.Limits{Connections: 2}, 0)
	b.places = &places{most: 1 << 20}
	if n := times(b.enter); n != 2 {
		t.Errorf("%d connections", n)
	}
	b.set(rules.Limits{Connections: 1})
	b.leave()
	if b.enter() {
		t.Error("more than one")
	}
	b.set(rules.Limits{})
	if n := b.connections() + times(b.enter); n != rules.UsualConnections {
		t.Errorf("%d connections without a limit", n)
	}
}

// There are as many requests as connections may be.
func TestRequests(t *testing.T) {
	b := newBudget(rules.Limits{Connections: 2}, 0)
	end := b.request()
	if b.request() == nil || b.request() != nil {
		t.Error("there are not two")
	}
	end()
	if b.request() == nil || b.request() != nil {
		t.Error("there is not another when one has ended")
	}
}

func TestConnectionsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(rules.Limits{ConnectionsPerSecond: 2}, 0)
		if n := times(b.fresh); n != 2 {
			t.Errorf("%d at once", n)
		}
		b.set(rules.Limits{ConnectionsPerSecond: 2, Connections: 7})
		if b.fresh() {
			t.Error("it begins anew when something else is changed")
		}
		time.Sleep(500 * time.Millisecond)
		if n := times(b.fresh); n != 1 {
			t.Errorf("%d after half a second", n)
		}
	})
}
