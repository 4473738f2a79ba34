package agent

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/exec-server/exec-server/internal/proto"
)

// holdOn makes something for test/hold to wait for, and returns the request and
// what ends its wait.
func holdOn(t *testing.T) (message string, release func()) {
	t.Helper()
	name := t.Name()
	hold := make(chan struct{})
	holds[name] = hold
	return `{"id":"hold","method":"test/hold","params":{"on":"` + name + `"}}`, func() { close(hold) }
}

const held = `{"id":"hold","result":{}}`

func TestSerialRequestsKeepTheirOrder(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		hold, release := holdOn(t)
		h := ready(t, s, proto.Hello{})
		h.send("%s", hold)
		// Whatever it is, it waits behind.
		h.send(`{"id":1,"method":"environment/status"}`)
		h.send(`{"id":2,"method":"process/terminate","params":{"processId":"p"}}`)
		h.send(`malformed`)
		h.send(`{"id":3,"method":"unknown"}`)
		h.send(`{"method":"initialized"}`)
		h.send("%s", hold)
		h.send(`{"id":4,"method":"environment/status"}`)
		synctest.Wait()
		if len(h.answers) != 0 {
			t.Errorf("%s is answered before what is ahead of it", h.answer())
		}
		release()
		var ids []string
		for range 7 {
			v, err := proto.Parse([]byte(h.answer()))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, string(v.Get("id").Raw()))
		}
		if got := strings.Join(ids, " "); got != "hold 1 2 -1 3 hold 4" {
			t.Errorf("the order is %s", got)
		}
		h.alive()
	})
}

func TestNotificationsPassAWaitingRequest(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		hold, release := holdOn(t)
		h := ready(t, s, proto.Hello{})
		h.send("%s", hold)
		synctest.Wait()
		h.session().notify(proto.FrameOf([]byte(`{"method":"news"}`)))
		if got := h.note(); got != `{"method":"news"}` {
			t.Errorf("got %s", got)
		}
		release()
		if got := h.answer(); got != held {
			t.Errorf("got %s", got)
		}
	})
}

func TestTheEndOfAConnectionIsNoticedWhileARequestWaits(t *testing.T) {
	for _, concurrency := range []int{1, 4} {
		inBubble(t, Options{}, func(t *testing.T, s *Server) {
			hold, _ := holdOn(t)
			h := ready(t, s, proto.Hello{Concurrency: concurrency})
			for range 20 {
				h.send("%s", hold)
			}
			synctest.Wait()
			h.leave()
			next := connect(t, s, proto.Hello{})
			next.initialize(h.id) // the session is not attached any more
			next.alive()
		})
	}
}

// A waiting read of a real process, too.
func TestAWaitingReadDoesNotKeepTheSessionAttached(t *testing.T) {
	s := newServer(t, Options{})
	h := ready(t, s, proto.Hello{})
	h.start("p", "sleep 1000", "")
	h.send(`{"id":1,"method":"process/read","params":{"processId":"p","waitMs":18446744073709551615}}`)
	h.send(`{"id":2,"method":"environment/status"}`)
	h.leave()
	next := connect(t, s, proto.Hello{})
	next.initialize(h.id)
	next.call("process/terminate", `{"processId":"p"}`, `ok {"running":true}`)
}

func TestAnUnexpectedMessageBehindAWaitingOneEndsTheConnection(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		hold, release := holdOn(t)
		h := ready(t, s, proto.Hello{})
		h.send("%s", hold)
		h.send(`{"method":"nonsense"}`)
		h.send(`{"id":1,"method":"environment/status"}`)
		synctest.Wait()
		release()
		if got := h.answer(); got != held {
			t.Errorf("got %s", got)
		}
		h.gone()
		h.leave()
	})
}

// Behind a waiting request 128 others are taken in; the socket is not read
// beyond, and nothing is lost.
func TestTheBacklogIsBounded(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		hold, release := holdOn(t)
		h := ready(t, s, proto.Hello{})
		h.send("%s", hold)
		synctest.Wait()
		const n = 1000
		sent := make(chan int, n)
		go func() {
			for i := range n {
				h.send(`{"id":%d,"method":"environment/status"}`, i)
				sent <- i
			}
		}()
		synctest.Wait()
		// One more has been read when the backlog was found to be full.
		if got := len(sent); got != maxBacklog+1 {
			t.Errorf("%d messages were read", got)
		}
		release()
		if got := h.answer(); got != held {
			t.Errorf("got %s", got)
		}
		for i := range n {
			if got, want := h.answer(), fmt.Sprintf(`{"id":%d,"result":{"status":"ready"}}`, i); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
	})
}

// A thousand requests at once, before any answer is read, are all answered.
func TestManyRequestsAtOnceAreAnswered(t *testing.T) {
	for _, concurrency := range []int{1, 8} {
		h := ready(t, newServer(t, Options{}), proto.Hello{Concurrency: concurrency})
		const n = 4098
		for i := range n {
			h.send(`{"id":%d,"method":"fs/getMetadata","params":{"path":"file:///"}}`, i)
		}
		for range n {
			if got := h.answer(); !strings.Contains(got, `"result":`) {
				t.Fatal(got)
			}
		}
		h.alive()
	}
}
