package agent

import (
	"io"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestSessionsAndProcessesAreCounted(t *testing.T) {
	s := newServer(t, Options{})
	counted := func(want proto.Counts) {
		t.Helper()
		end := time.Now().Add(patience)
		for s.Counts() != want && time.Now().Before(end) { // a process is told closed a moment before it is counted out
			time.Sleep(time.Millisecond)
		}
		if got := s.Counts(); got != want {
			t.Errorf("there are %+v, and not %+v", got, want)
		}
	}
	counted(proto.Counts{})
	h := ready(t, s, proto.Hello{})
	counted(proto.Counts{Sessions: 1})
	h.start("p", "read x", `,"pipeStdin":true`)
	counted(proto.Counts{Sessions: 1, Processes: 1})
	other := ready(t, s, proto.Hello{})
	other.leave() // its session waits to be resumed
	counted(proto.Counts{Sessions: 2, Processes: 1})
	h.call("process/terminate", `{"processId":"p"}`, `ok {"running":true}`)
	h.untilClosed("p")
	counted(proto.Counts{Sessions: 2})
}

func TestTheSocketTellsTheCounts(t *testing.T) {
	path := outside(t)
	c := proto.NewStreamConn(dialAgent(t, path), proto.MaxCounts)
	if err := c.WriteFrames(proto.Hello{Count: true}.Frame()); err != nil {
		t.Fatal(err)
	}
	f, err := c.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := proto.ParseCounts(f.Body()); err != nil || got != (proto.Counts{}) {
		t.Errorf("it tells %+v, %v", got, err)
	}
	if f, err := c.ReadFrame(); err != io.EOF {
		t.Errorf("more comes: %q, %v", f, err)
	}
}
