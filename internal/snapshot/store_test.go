package snapshot

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func open() *state { return &state{shared: shared{file: sealed("x")}} }

func closed(s *state) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file == nil
}

func TestASnapshotIsTakenOnce(t *testing.T) {
	var s Store
	defer s.End()
	var taken atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			st := s.get("key", func(<-chan struct{}) *state { taken.Add(1); time.Sleep(time.Millisecond); return open() })
			if st == nil || closed(st) {
				t.Error("there is none")
			}
		})
	}
	all.Wait()
	if n := taken.Load(); n != 1 {
		t.Errorf("it was taken %d times", n)
	}
	if s.get("other", func(<-chan struct{}) *state { return nil }) != nil {
		t.Error("there is another one")
	}
	if s.get("other", func(<-chan struct{}) *state { t.Error("it is tried again"); return open() }) != nil {
		t.Error("there is another one")
	}
}

func TestTakingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Store
		begun := time.Now()
		st := s.get("key", func(cancel <-chan struct{}) *state { <-cancel; return nil })
		if took := time.Since(begun); st != nil || took != timeout {
			t.Errorf("it took %v", took)
		}
		s.get("key", func(<-chan struct{}) *state { t.Error("it is tried again"); return nil })
	})
}

func TestOldSnapshotsMakeRoom(t *testing.T) {
	var s Store
	defer s.End()
	all := make([]*state, maxSnapshots+2)
	for i := range all {
		all[i] = s.get(fmt.Sprint(i), func(<-chan struct{}) *state { return open() })
	}
	for i, st := range all {
		if gone := i < 2; closed(st) != gone || st.acquire() == gone {
			t.Errorf("snapshot %d: closed %v", i, closed(st))
		}
	}
}

func TestTheEndOfASession(t *testing.T) {
	var s Store
	used, idle := s.get("a", func(<-chan struct{}) *state { return open() }), s.get("b", func(<-chan struct{}) *state { return open() })
	if !used.acquire() {
		t.Fatal("it cannot be used")
	}
	begun, got := make(chan struct{}), make(chan *state)
	go func() {
		got <- s.get("c", func(cancel <-chan struct{}) *state { close(begun); <-cancel; return open() })
	}()
	<-begun
	s.End()
	if late := <-got; late == nil || !closed(late) || late.acquire() {
		t.Error("what was being taken is kept")
	}
	if !closed(idle) || closed(used) {
		t.Error("what nobody uses is kept, or what is used is not")
	}
	used.release()
	if !closed(used) {
		t.Error("what was used is kept")
	}
	if s.get("a", func(<-chan struct{}) *state { t.Error("one is taken"); return nil }) != nil {
		t.Error("there is one after the end")
	}
	s.End()
	var unused Store
	unused.End()
}

func TestNobodyCanChangeASnapshot(t *testing.T) {
	f := sealed("text")
	if f == nil {
		t.Fatal("there is no sealed memory")
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("it can be written to")
	}
	if err := f.Truncate(0); err == nil {
		t.Error("it can be cut")
	}
	if _, err := f.WriteAt([]byte("x"), 4); err == nil {
		t.Error("it can be added to")
	}
	got := make([]byte, 9)
	if n, _ := f.ReadAt(got, 0); string(got[:n]) != "text" {
		t.Errorf("it holds %q", got[:n])
	}
}
