package network

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	someKey  = key{netip.MustParseAddrPort("192.0.0.2:4000"), netip.MustParseAddrPort("1.1.1.1:443")}
	otherKey = key{someKey.from, netip.MustParseAddrPort("1.1.1.1:80")}
)

// bookTest runs f with a book that counts what it drops.
func bookTest(t *testing.T, f func(t *testing.T, b *book, dropped *atomic.Int32)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dropped := new(atomic.Int32)
		b := newBook(func(*connection) { dropped.Add(1) })
		f(t, b, dropped)
	})
}

// verdicts are those that a packet was given so far.
func verdicts(p packet) (all string) {
	synctest.Wait()
	for {
		select {
		case v := <-p:
			all += v
		default:
			return all
		}
	}
}

func nothing() {}

func TestAReservation(t *testing.T) {
	bookTest(t, func(t *testing.T, b *book, dropped *atomic.Int32) {
		p, c := make(packet, 9), &connection{key: someKey}
		if !b.begin(someKey, p, nothing) || b.take(someKey) != nil || !b.put(someKey, c) || verdicts(p) != "accepted" {
			t.Error("it is not accepted")
		}
		if b.begin(someKey, p, nothing) || verdicts(p) != "accepted" {
			t.Error("a packet that is sent again is not accepted")
		}
		if b.take(otherKey) != nil || b.take(someKey) != c || b.take(someKey) != nil {
			t.Error("it is not taken once")
		}
		time.Sleep(2 * patience)
		if verdicts(p) != "" || dropped.Load() != 0 {
			t.Error("what was taken is dropped")
		}
	})
}

// The port may be another one by then, and nothing else.
func TestAReservationFromAnotherPort(t *testing.T) {
	bookTest(t, func(t *testing.T, b *book, dropped *atomic.Int32) {
		moved := key{netip.AddrPortFrom(someKey.from.Addr(), 5000), someKey.to}
		b.begin(someKey, make(packet, 9), nothing)
		b.begin(moved, make(packet, 9), nothing) // in the making
		if b.take(moved) != nil {
			t.Error("what is not made yet is taken")
		}
		b.put(someKey, &connection{key: someKey})
		stranger := key{netip.MustParseAddrPort("192.0.0.3:4000"), someKey.to}
		if b.take(otherKey) != nil || b.take(stranger) != nil {
			t.Error("that of another address is taken")
		}
		if c := b.take(moved); c == nil || c.key != someKey {
			t.Error("it is not taken")
		}
		b.put(moved, &connection{key: moved})
		if c := b.take(someKey); c == nil || c.key != moved || b.take(someKey) != nil {
			t.Error("the other one does not get what is left, once")
		}
		time.Sleep(2 * patience)
		if synctest.Wait(); dropped.Load() != 0 {
			t.Error("what was taken is dropped")
		}
	})
}

func TestAReservationExpires(t *testing.T) {
	bookTest(t, func(t *testing.T, b *book, dropped *atomic.Int32) {
		b.begin(someKey, make(packet, 9), nothing)
		time.Sleep(time.Second)
		b.put(someKey, &connection{})
		time.Sleep(patience - 1)
		if synctest.Wait(); dropped.Load() != 0 {
			t.Error("early")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); dropped.Load() != 1 || b.take(someKey) != nil {
			t.Error("it waits still")
		}
	})
}

func TestAFailedConnection(t *testing.T) {
	bookTest(t, func(t *testing.T, b *book, dropped *atomic.Int32) {
		p := make(packet, 9)
		b.begin(someKey, p, nothing)
		if v := b.fail(someKey); v == nil || b.fail(someKey) != nil {
			t.Error("not one packet waits for its verdict")
		}
		if !b.begin(someKey, p, nothing) {
			t.Error("it is not tried again")
		}
		b.fail(someKey)
		time.Sleep(2 * holdTime)
		if got := verdicts(p); got != "" {
			t.Errorf("it is %s by and by", got)
		}
	})
}

// A packet is not held for ever, and the next one takes its place.
func TestASlowConnection(t *testing.T) {
	bookTest(t, func(t *testing.T, b *book, dropped *atomic.Int32) {
		ctx, cancel := context.WithCancel(t.Context())
		first, second, third := make(packet, 9), make(packet, 9), make(packet, 9)
		b.begin(someKey, first, cancel)
		time.Sleep(3 * time.Second)
		if b.begin(someKey, second, nothing) || verdicts(first) != "dropped" {
			t.Error("two are held")
		}
		time.Sleep(holdTime)
		if verdicts(second) != "dropped" {
			t.Error("it is held for long")
		}
		time.Sleep(13 * time.Second) // as long again as since the first
		if b.begin(someKey, third, nothing) || verdicts(third) != "" || ctx.Err() != nil {
			t.Error("the third is not held")
		}
		time.Sleep(holdTime)
		if verdicts(third) != "dropped" {
			t.Error("the third is held for long")
		}
		time.Sleep(36*time.Second + slack)
		if synctest.Wait(); ctx.Err() == nil {
			t.Error("the connection is tried still, and nobody waits for it")
		}
	})
}

// What is ready between two packets waits for the next one.
func TestReadyBetweenTwoPackets(t *testing.T) {
	bookTest(t, func(t *testing.T, b *book, dropped *atomic.Int32) {
		ctx, cancel := context.WithCancel(t.Context())
		p, c := make(packet, 9), &connection{}
		b.begin(someKey, p, cancel)
		time.Sleep(holdTime + 5*time.Second)
		if verdicts(p) != "dropped" || !b.put(someKey, c) {
			t.Error("it is not ready")
		}
		time.Sleep(15 * time.Second)
		if b.begin(someKey, p, nothing) || verdicts(p) != "accepted" || b.take(someKey) != c || ctx.Err() != nil || dropped.Load() != 0 {
			t.Error("it does not wait")
		}
	})
}

func TestABookIsClosed(t *testing.T) {
	bookTest(t, func(t *testing.T, b *book, dropped *atomic.Int32) {
		making, waits := make(packet, 9), make(packet, 9)
		b.begin(someKey, making, nothing)
		b.begin(otherKey, waits, nothing)
		b.put(otherKey, &connection{})
		b.close()
		if dropped.Load() != 1 || b.put(someKey, &connection{}) || b.fail(someKey) == nil || b.take(otherKey) != nil {
			t.Error("something waits still")
		}
		time.Sleep(2 * patience)
		if synctest.Wait(); dropped.Load() != 1 {
			t.Error("dropped again")
		}
	})
}
