package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// inBubble runs a test with a clock of its own.
func inBubble(t *testing.T, opts Options, f func(*testing.T, *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newServer(t, opts)) })
}

func TestADetachedSessionLivesFor80Seconds(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		h := ready(t, s, proto.Hello{})
		for range 3 { // each resume starts the time anew
			h.leave()
			time.Sleep(80*time.Second - 1)
			next := connect(t, s, proto.Hello{})
			next.initialize(h.id)
			h = next
		}
		time.Sleep(time.Hour) // attached it has no end
		h.alive()
		h.leave()
		time.Sleep(80 * time.Second)
		synctest.Wait()
		connect(t, s, proto.Hello{}).call("initialize", `{"clientName":"x","resumeSessionId":"`+h.id+`"}`, "-32600 unknown session id "+h.id)
		if len(s.sessions) != 0 {
			t.Errorf("%d sessions are left", len(s.sessions))
		}
	})
}

func TestTheDetachTimeCanBeSet(t *testing.T) {
	inBubble(t, Options{Detach: time.Minute}, func(t *testing.T, s *Server) {
		for _, test := range []struct {
			after time.Duration
			lives bool
		}{{time.Minute - 1, true}, {time.Minute, false}} {
			h := ready(t, s, proto.Hello{})
			h.leave()
			time.Sleep(test.after)
			synctest.Wait()
			if s.mu.Lock(); (s.sessions[h.id] != nil) != test.lives {
				t.Errorf("after %v it lives: %v", test.after, !test.lives)
			}
			s.mu.Unlock()
		}
	})
}

func TestAnExpiredSessionKillsItsProcesses(t *testing.T) {
	s := newServer(t, Options{Detach: time.Millisecond})
	h := ready(t, s, proto.Hello{})
	h.start("p", "sleep 1000", "")
	sess := h.session()
	p, _ := sess.find("p")
	h.leave()
	p.Read(0, 0, false, patience, nil)
	if p.Running() {
		t.Error("it is running still")
	}
}

func TestTheEndOfAChosenSessionIsTold(t *testing.T) {
	last := make(chan string, 1)
	inBubble(t, Options{LastSession: func(id string) { last <- id }}, func(t *testing.T, s *Server) {
		h := connect(t, s, proto.Hello{SessionID: "chosen"})
		h.initialize("")
		h.leave()
		time.Sleep(80*time.Second - 1)
		synctest.Wait()
		if len(last) != 0 {
			t.Error("the end is told too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if len(last) != 1 {
			t.Error("the end is not told")
		}
	})
}

// A closed process stays for a time, and then its id is free. The process is a
// real one; the clock stands while it runs.
func TestAClosedProcessIsKeptFor80Seconds(t *testing.T) {
	for _, opts := range []Options{{}, {KeepClosed: 5 * time.Second, Detach: time.Hour}} {
		inBubble(t, opts, func(t *testing.T, s *Server) {
			keep := s.opts.KeepClosed
			h := ready(t, s, proto.Hello{})
			params := h.startParams("p", "echo x; exit 3", "")
			h.call("process/start", params, `ok {"processId":"p","sandboxType":"none"}`)
			h.untilClosed("p")
			time.Sleep(keep - 1)
			h.call("process/read", `{"processId":"p","afterSeq":1}`,
				`ok {"chunks":[],"nextSeq":4,"exited":true,"exitCode":3,"closed":true,"failure":null,"sandboxDenied":false}`)
			h.call("process/start", params, "-32600 process p already exists")
			h.call("process/terminate", `{"processId":"p"}`, `ok {"running":false}`)
			h.call("process/signal", `{"processId":"p","signal":"interrupt"}`, `ok {}`)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			h.call("process/read", `{"processId":"p"}`, "-32600 unknown process id p")
			h.call("process/start", params, `ok {"processId":"p","sandboxType":"none"}`)
			h.untilClosed("p")
		})
	}
}

// The time of a process's record must not end its successor of the same name.
func TestRetentionIsTheProcesssOwn(t *testing.T) {
	inBubble(t, Options{KeepClosed: time.Second}, func(t *testing.T, s *Server) {
		h := ready(t, s, proto.Hello{})
		for i := range 3 {
			h.start("p", fmt.Sprintf("exit %d", i), "")
			if _, code := h.untilClosed("p"); code != i {
				t.Errorf("exit code %d, want %d", code, i)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
	})
}
