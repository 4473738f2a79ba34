package remotetest

import (
	"time"

	"github.com/exec-server/exec-server/internal/remote/relay"
)

// Way is what happens to frames in one direction. Of the data frames, each Nth, by
// a count of their own, is dropped, and so on; 0 is none.
type Way struct {
	Drop, Duplicate, Tamper int
	// Reorder swaps a frame with the next of its stream; without a next one it
	// comes 100 ms late.
	Reorder int
	// TamperHandshake changes a bit of each handshake.
	TamperHandshake bool

	count int
	held  map[string]*heldFrame
}

type heldFrame struct {
	f     relay.Frame
	timer *time.Timer
}

// pass sends a frame, or what becomes of it, through send. It returns the first
// error of send. way is called with the peer's lock held.
func (p *Peer) pass(environmentID string, way func(*Faults) *Way, f relay.Frame, send func(relay.Frame) error) error {
	p.mu.Lock()
	out := p.alter(way(p.faultsOf(environmentID)), f, send)
	p.mu.Unlock()
	for _, f := range out {
		if err := send(f); err != nil {
			return err
		}
	}
	return nil
}

func (p *Peer) alter(w *Way, f relay.Frame, send func(relay.Frame) error) []relay.Frame {
	if f.Kind == relay.Handshake && w.TamperHandshake {
		f.Payload = flip(f.Payload)
	}
	if f.Kind != relay.Data {
		return []relay.Frame{f}
	}
	w.count++
	hit := func(n int) bool { return n > 0 && w.count%n == 0 }
	if hit(w.Drop) {
		return nil
	}
	if hit(w.Tamper) {
		f.Payload = flip(f.Payload)
	}
	if h := w.held[f.StreamID]; h != nil {
		delete(w.held, f.StreamID)
		h.timer.Stop()
		return []relay.Frame{f, h.f}
	}
	if hit(w.Reorder) {
		p.hold(w, f, send)
		return nil
	}
	if hit(w.Duplicate) {
		return []relay.Frame{f, f}
	}
	return []relay.Frame{f}
}

// hold keeps a frame back for a while. The caller holds p.mu.
func (p *Peer) hold(w *Way, f relay.Frame, send func(relay.Frame) error) {
	if w.held == nil {
		w.held = map[string]*heldFrame{}
	}
	held := w.held
	h := &heldFrame{f: f}
	held[f.StreamID] = h
	h.timer = time.AfterFunc(100*time.Millisecond, func() {
		if !p.begin() {
			return
		}
		defer p.work.Done()
		p.mu.Lock()
		mine := held[f.StreamID] == h
		if mine {
			delete(held, f.StreamID)
		}
		p.mu.Unlock()
		if mine {
			_ = send(f)
		}
	})
}

func flip(b []byte) []byte {
	b = append([]byte(nil), b...)
	b[len(b)/2] ^= 1
	return b
}
