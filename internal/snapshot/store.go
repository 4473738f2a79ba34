package snapshot

import (
	"context"
	"sync"
	"time"

	"github.com/exec-server/exec-server/internal/process"
)

const (
	// timeout is how long start-up files may take.
	timeout = 10 * time.Second
	// maxSnapshots is how many a session keeps.
	maxSnapshots = 16
)

// Store holds the snapshots of a session. The zero value is ready.
type Store struct {
	mu      sync.Mutex // guards all below; not held while a snapshot is taken
	entries map[string]*entry
	order   []string // keys, the oldest first
	ended   bool
	ending  chan struct{} // closed by End; nil until somebody needs it
}

// entry is a snapshot, or the taking of one. That there is none is remembered as
// well: what takes too long would do so each time.
type entry struct {
	taken chan struct{} // closed when state is set
	state *state        // nil if there is none
}

// Waits says whether Use would have to take a snapshot, or wait for one.
func (s *Store) Waits(w *Wish, spec *process.Spec) bool {
	if !w.suits(spec) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[w.key(spec)]
	if e == nil {
		return !s.ended
	}
	select {
	case <-e.taken:
		return false
	default:
		return true
	}
}

// Use makes a login shell that is about to be started one that begins with a
// snapshot, which is taken first if there is none yet. What is pinned in the
// environment stays as it is. The command may be started until release is called.
func (s *Store) Use(w *Wish, spec *process.Spec, pinned func(name string) bool, run Runner) (release func()) {
	nothing := func() {}
	if !w.suits(spec) {
		return nothing
	}
	st := s.get(w.key(spec), func(cancel <-chan struct{}) *state { return w.take(spec, run, cancel) })
	if st == nil || !st.acquire() {
		return nothing
	}
	st.apply(w, spec, pinned)
	return st.release
}

// get returns the snapshot of that key, nil if there is none. It takes it, or
// waits until it has been taken.
func (s *Store) get(key string, take func(cancel <-chan struct{}) *state) *state {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return nil
	}
	e := s.entries[key]
	if e != nil {
		s.mu.Unlock()
		<-e.taken
		return e.state
	}
	e = &entry{taken: make(chan struct{})}
	dropped := s.addLocked(key, e)
	ending := s.ending
	s.mu.Unlock()
	dropped.end()

	ctx, stop := context.WithTimeout(context.Background(), timeout)
	go func() {
		select {
		case <-ending:
			stop()
		case <-ctx.Done():
		}
	}()
	e.state = take(ctx.Done())
	stop()
	close(e.taken)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[key] != e { // the session has ended, or there were many others
		e.end()
	}
	return e.state
}

// addLocked makes room and adds an entry. It returns what had to go.
func (s *Store) addLocked(key string, e *entry) (dropped *entry) {
	if s.entries == nil {
		s.entries, s.ending = make(map[string]*entry), make(chan struct{})
	}
	if len(s.order) == maxSnapshots {
		dropped = s.entries[s.order[0]]
		delete(s.entries, s.order[0])
		s.order = s.order[1:]
	}
	s.entries[key] = e
	s.order = append(s.order, key)
	return dropped
}

// end lets go of a snapshot that is in no store any more. One that is being
// taken is let go of by whoever takes it.
func (e *entry) end() {
	if e == nil {
		return
	}
	select {
	case <-e.taken:
		if e.state != nil {
			e.state.end()
		}
	default:
	}
}

// End lets go of all snapshots, and of those that are being taken.
func (s *Store) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	if s.ending != nil {
		close(s.ending)
	}
	for _, e := range s.entries {
		e.end()
	}
	s.entries, s.order = nil, nil
}
