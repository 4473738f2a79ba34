package agent

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/exec-server/exec-server/internal/proto"
)

// silent is a connection behind its handshake whose harness reads nothing more,
// until it is told to.
func silent(t *testing.T, s *Server, hello proto.Hello) *harness {
	t.Helper()
	ours, theirs := net.Pipe()
	h := deaf(t, s, hello, proto.NewStreamConn(ours, proto.MaxAnswer), proto.NewStreamConn(theirs, proto.MaxRequest))
	h.send(`{"id":0,"method":"initialize","params":{"clientName":"x"}}`)
	f, err := h.conn.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	v, err := proto.Parse(f.Body())
	if err != nil {
		t.Fatal(err)
	}
	h.id = v.Get("result").Get("sessionId").Str()
	h.send(`{"method":"initialized"}`)
	return h
}

func note(i int, more string) []byte {
	return proto.FrameOf(fmt.Appendf(nil, `{"method":"n","params":{"i":%d,"more":"%s"}}`, i, more))
}

func TestAnswersPassQueuedNotifications(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		h := silent(t, s, proto.Hello{})
		sess := h.session()
		go func() {
			for i := range 3 {
				sess.notify(note(i, ""))
			}
		}()
		synctest.Wait() // the first is being written, the others are queued
		h.send(`{"id":1,"method":"environment/status"}`)
		h.send(`{"id":2,"method":"environment/status"}`)
		synctest.Wait()
		var order []string
		for range 5 {
			f, err := h.conn.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			order = append(order, string(f.Body()[:8]))
		}
		if got, want := strings.Join(order, " "), `{"method {"id":1, {"id":2, {"method {"method`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestTrap58ManyGoroutinesNotifyAtOnce(t *testing.T) {
	s := newServer(t, Options{})
	h := ready(t, s, proto.Hello{Concurrency: 4})
	sess := h.session()
	const writers, each = 64, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				sess.notify(proto.FrameOf(fmt.Appendf(nil, `{"method":"n","params":{"w":%d,"i":%d,"x":"%s"}}`, w, i, strings.Repeat("x", i*w))))
			}
		})
	}
	for range 200 {
		h.alive() // answers go in between
	}
	wg.Wait()
	var next [writers]uint64
	for range writers * each {
		m, err := proto.ParseMessage([]byte(h.note()))
		if err != nil {
			t.Fatal(err)
		}
		w, _ := m.Params.Get("w").Uint64()
		i, _ := m.Params.Get("i").Uint64()
		if i != next[w] {
			t.Fatalf("notification %d of goroutine %d comes when %d is due", i, w, next[w])
		}
		next[w]++
	}
}
