package agent

import (
	"regexp"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestSessionIDsAreUUIDs(t *testing.T) {
	s := newServer(t, Options{})
	first, second := ready(t, s, proto.Hello{}).id, ready(t, s, proto.Hello{}).id
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !uuid.MatchString(first) || !uuid.MatchString(second) || first == second {
		t.Errorf("the ids are %s and %s", first, second)
	}
}

func TestAnAttachedSessionCannotBeResumed(t *testing.T) {
	s := newServer(t, Options{})
	h := ready(t, s, proto.Hello{})
	other := connect(t, s, proto.Hello{})
	other.call("initialize", `{"clientName":"x","resumeSessionId":"`+h.id+`"}`, "-32010 session "+h.id+" is already attached to another connection")
	h.alive() // nothing has happened to it
	other.initialize("")
	other.alive()
}

func TestUnknownSessions(t *testing.T) {
	h := connect(t, newServer(t, Options{}), proto.Hello{})
	for _, id := range []string{"", "x", "00000000-0000-4000-8000-000000000000"} {
		h.call("initialize", `{"clientName":"x","resumeSessionId":"`+id+`"}`, "-32600 unknown session id "+id)
	}
	if got := h.result("initialize", `{"clientName":"x","resumeSessionId":null}`); !strings.HasPrefix(got, "ok ") {
		t.Error(got)
	}
}

func TestASessionCanBeResumedAgainAndAgain(t *testing.T) {
	s := newServer(t, Options{})
	h := ready(t, s, proto.Hello{})
	h.start("p", "sleep 1000", `,"pipeStdin":true`)
	h.call("process/write", `{"processId":"p","chunk":"","writeId":"w"}`, `ok {"status":"accepted"}`)
	for range 3 {
		h.leave()
		next := connect(t, s, proto.Hello{})
		if id := next.initialize(h.id); id != h.id {
			t.Fatalf("the resumed session is %s, not %s", id, h.id)
		}
		h = next
		h.call("process/start", h.startParams("p", "true", ""), "-32600 process p already exists")
		h.call("process/write", `{"processId":"p","chunk":"AA==","writeId":"w"}`, `ok {"status":"accepted"}`)
	}
	h.call("process/terminate", `{"processId":"p"}`, `ok {"running":true}`)
}

func TestSessionsDoNotSeeEachOthersProcesses(t *testing.T) {
	s := newServer(t, Options{})
	a, b := ready(t, s, proto.Hello{}), ready(t, s, proto.Hello{})
	a.start("p", "sleep 1000", "")
	b.call("process/read", `{"processId":"p"}`, "-32600 unknown process id p")
	b.call("process/write", `{"processId":"p","chunk":"","writeId":"1"}`, `ok {"status":"unknownProcess"}`)
	b.call("process/terminate", `{"processId":"p"}`, `ok {"running":false}`)
	b.start("p", "exit 4", "")
	if _, code := b.untilClosed("p"); code != 4 {
		t.Errorf("exit code %d", code)
	}
	select {
	case note := <-a.notes:
		t.Errorf("the other session was told %s", note)
	default:
	}
	a.call("process/terminate", `{"processId":"p"}`, `ok {"running":true}`)
}

// What happens while nobody is attached is kept, and not notified later.
func TestADetachedSessionGoesOn(t *testing.T) {
	s := newServer(t, Options{})
	h := ready(t, s, proto.Hello{})
	g, g2 := newGate(t), newGate(t)
	h.start("p", "echo one; : <"+string(g)+"; echo two; : <"+string(g2)+"; echo three", "")
	h.note()
	h.leave()
	g.open(t) // two comes while it is detached
	p, _ := h.session().find("p")
	p.Read(1, 0, false, patience, nil)

	again := connect(t, s, proto.Hello{})
	again.initialize(h.id)
	if got := again.result("process/read", `{"processId":"p","afterSeq":1}`); !strings.HasPrefix(got, `ok {"chunks":[{"seq":2,"stream":"stdout","chunk":"dHdvCg=="}],"nextSeq":3,`) {
		t.Errorf("after the resume: %s", got)
	}
	g2.open(t)
	out, code := again.untilClosed("p")
	// Output is kept before it is notified, so that two may come again.
	if strings.TrimPrefix(out, "two\n") != "three\n" || code != 0 {
		t.Errorf("the new connection was told %q, exit code %d", out, code)
	}
}

// A session that the gateway named tells when it is gone.
func TestAChosenSession(t *testing.T) {
	last := make(chan string, 3)
	s := newServer(t, Options{LastSession: func(id string) { last <- id }})
	h := connect(t, s, proto.Hello{SessionID: "chosen"})
	if id := h.initialize(""); id != "chosen" {
		t.Errorf("the session is %s", id)
	}
	second := connect(t, s, proto.Hello{SessionID: "chosen"})
	second.call("initialize", `{"clientName":"x"}`, "-32600 session id chosen is taken")
	s.Close()
	if id := <-last; id != "chosen" {
		t.Errorf("the session %s is gone", id)
	}

	never := connect(t, s, proto.Hello{SessionID: "never"})
	never.leave()
	if id := <-last; id != "never" {
		t.Errorf("the session %s was not opened", id)
	}
}

func TestCloseKillsProcesses(t *testing.T) {
	s := newServer(t, Options{})
	h := ready(t, s, proto.Hello{})
	h.start("p", "sleep 1000", "")
	s.Close()
	if _, code := h.untilClosed("p"); code != 137 {
		t.Errorf("exit code %d", code)
	}
	h.call("process/read", `{"processId":"p"}`, "-32600 unknown process id p")
	h.call("process/start", h.startParams("q", "sleep 1000", ""), "-32600 session has ended")
	h.leave()
	connect(t, s, proto.Hello{}).call("initialize", `{"clientName":"x","resumeSessionId":"`+h.id+`"}`, "-32600 unknown session id "+h.id)
}
