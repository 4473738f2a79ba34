package agent

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// Harnesses that vanish while their commands print at full speed leave nothing,
// and hold up nobody else's. That they leave no descriptors and processes of a
// real server is TestTrap14HarnessesVanish of internal/e2e.
func TestTrap14HarnessesVanish(t *testing.T) {
	s := newServer(t, Options{Detach: time.Millisecond})
	steady := ready(t, s, proto.Hello{})
	steady.start("steady", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo $i; sleep 0.005; done", "")
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for i := range 10 {
				h := ready(t, s, proto.Hello{Concurrency: 1 + i%2*3})
				h.start("p", "cat /dev/zero", "")
				for range i {
					h.note()
				}
				h.leave()
			}
		})
	}
	wg.Wait()
	out, _ := steady.untilClosed("steady")
	if lines := strings.Fields(out); len(lines) != 300 || lines[299] != "300" {
		t.Errorf("the steady command printed %d lines", len(lines))
	}
	for end := time.Now().Add(patience); s.running.Load() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d commands run still", s.running.Load())
		}
	}
}

// A session can be taken up after minutes if so configured, with its process and
// all of its output; if not, that is said.
func TestTrap15ResumeAfterMinutes(t *testing.T) {
	for _, detach := range []time.Duration{4 * time.Minute, 0} {
		inBubble(t, Options{Detach: detach, KeepClosed: detach}, func(t *testing.T, s *Server) {
			h := ready(t, s, proto.Hello{})
			h.start("p", "echo one; exit 3", "")
			h.untilClosed("p")
			h.leave()
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			next := connect(t, s, proto.Hello{})
			if detach == 0 {
				next.call("initialize", `{"clientName":"x","resumeSessionId":"`+h.id+`"}`, "-32600 unknown session id "+h.id)
				return
			}
			next.initialize(h.id)
			got := next.result("process/read", `{"processId":"p","afterSeq":0}`)
			if !strings.Contains(got, `"chunk":"b25lCg=="`) || !strings.Contains(got, `"exitCode":3`) {
				t.Errorf("after three minutes: %s", got)
			}
		})
	}
}

// The terminal of a command can be given a size, which the command is told of by
// SIGWINCH. The protocol has no such thing: it is an extension for our own
// client.
func TestTrap41Resize(t *testing.T) {
	s := newServer(t, Options{})
	h := ready(t, s, proto.Hello{Extensions: true})
	script := `trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.02; done`
	h.call("process/start", strings.Replace(h.startParams("p", script, ""), `"tty":false`, `"tty":true`, 1), `ok {"processId":"p","sandboxType":"none"}`)
	for !strings.Contains(h.note(), `"process/output"`) {
	}
	h.call("process/resize", `{"processId":"p","rows":40,"cols":132}`, `ok {}`)
	if out, code := h.untilClosed("p"); code != 0 || out != "40 132\r\n" {
		t.Errorf("exit code %d, output %q", code, out)
	}
	h.call("process/resize", `{"processId":"p","rows":1,"cols":1}`, `ok {}`) // after its end nothing happens
	h.start("q", "echo up; sleep 1000", "")
	h.call("process/resize", `{"processId":"q","rows":1,"cols":1}`, `ok {}`) // nor without a terminal
	h.call("process/terminate", `{"processId":"q"}`, `ok {"running":true}`)
	h.untilClosed("q")
	stock := ready(t, s, proto.Hello{})
	stock.call("process/resize", `{"processId":"p","rows":1,"cols":1}`, "-32601 exec-server stub does not implement `process/resize` yet")
}
