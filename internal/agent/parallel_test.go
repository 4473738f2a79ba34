package agent

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/exec-server/exec-server/internal/proto"
)

// full is a connection all of whose places are taken by held requests, with one
// more waiting.
func full(t *testing.T, s *Server, places int) (h *harness, release func()) {
	t.Helper()
	hold, release := holdOn(t)
	h = ready(t, s, proto.Hello{Concurrency: places, Extensions: true})
	for range places + 1 {
		h.send("%s", hold)
	}
	synctest.Wait()
	return h, release
}

func TestRequestsRunAtOnce(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		hold, release := holdOn(t)
		h := ready(t, s, proto.Hello{Concurrency: 3})
		h.send("%s", hold)
		h.send("%s", hold)
		h.call("fs/canonicalize", `{"path":"file:///"}`, `ok {"path":"file:///"}`)
		release()
		for range 2 {
			if got := h.answer(); got != held {
				t.Errorf("got %s", got)
			}
		}
	})
}

// When all places are taken, what is quick or urgent is served nevertheless.
func TestUrgentMethodsPassFullLanes(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		h, release := full(t, s, 2)
		h.call("environment/status", `null`, `ok {"status":"ready"}`)
		if got := h.result("environment/info", `null`); !strings.HasPrefix(got, "ok ") {
			t.Error(got)
		}
		h.call("process/signal", `{"processId":"p","signal":"interrupt"}`, `ok {}`)
		h.call("process/terminate", `{"processId":"p"}`, `ok {"running":false}`)
		h.call("process/resize", `{"processId":"p","rows":1,"cols":1}`, `ok {}`)
		h.call("fs/close", `{"handleId":"h"}`, `ok {}`)
		h.call("initialize", `{"clientName":"x"}`, "-32600 initialize may only be sent once per connection")
		h.call("fs/readFile", `{}`, "-32602 missing field `path`")
		h.expect(`x`, `{"error":{"code":-32600,"message":"failed to parse websocket JSON-RPC message from `+peerName+`: expected value at line 1 column 1"},"id":-1}`)
		h.alive()
		// Writes and starts are not among them.
		for i, m := range []string{"process/write", "process/start", "process/read", "fs/getMetadata"} {
			h.send(`{"id":%d,"method":"%s","params":%s}`, i, m, valid[m].params)
		}
		synctest.Wait()
		if len(h.answers) > 0 {
			t.Errorf("it does not wait: %s", h.answer())
		}
		release()
		for range 3 + 4 {
			h.answer()
		}
		h.session().end()
	})
}

// Behind full lanes 128 requests wait, and then the socket is not read.
func TestTheBacklogOfLanesIsBounded(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		h, release := full(t, s, 2)
		const n = 500
		sent := make(chan int, n)
		go func() {
			for i := range n {
				h.send(`{"id":%d,"method":"fs/canonicalize","params":{"path":"file:///"}}`, i)
				sent <- i
			}
		}()
		synctest.Wait()
		// One of the 128 is a held one; another has been read but has no place.
		if got := len(sent); got != maxBacklog {
			t.Errorf("%d messages were read", got)
		}
		release()
		var ids []string
		for range n + 3 {
			v, err := proto.Parse([]byte(h.answer()))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, string(v.Get("id").Raw()))
		}
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) != n+1 { // the held ones have the same id
			t.Errorf("%d requests were answered", len(ids))
		}
	})
}

// counted is a connection of prepared messages that counts the answers.
type counted struct {
	messages chan string
	answers  atomic.Int64
}

func (c *counted) ReadFrame() (proto.Frame, error) {
	text, ok := <-c.messages
	if !ok {
		return nil, io.EOF
	}
	return proto.FrameOf([]byte(text)), nil
}

func (c *counted) WriteFrames(frames []byte) error {
	for len(frames) > 0 {
		_, frames = proto.NextFrame(frames)
		c.answers.Add(1)
	}
	return nil
}

func (c *counted) Close() error { return nil }

// No request may be forgotten when the lanes run empty at the very moment that
// the reader finds room in the backlog.
func TestLanesForgetNothingWhenTheyRunEmpty(t *testing.T) {
	for range 100 {
		inBubble(t, Options{}, func(t *testing.T, s *Server) {
			hold, release := holdOn(t)
			c := &counted{messages: make(chan string, 1000)}
			c.messages <- `{"id":0,"method":"initialize","params":{"clientName":"x"}}`
			c.messages <- `{"method":"initialized"}`
			c.messages <- hold
			c.messages <- hold
			const n = maxBacklog + 1
			for i := range n {
				c.messages <- fmt.Sprintf(`{"id":%d,"method":"fs/close","params":{"handleId":"h"}}`, i)
				c.messages <- fmt.Sprintf(`{"id":%d,"method":"process/read","params":{"processId":"p"}}`, i)
			}
			go func() { _ = s.Serve(c, proto.Hello{Peer: peerName, Concurrency: 2}) }()
			synctest.Wait()
			release()
			synctest.Wait()
			close(c.messages)
			if got := c.answers.Load(); got != 1+2+2*n {
				t.Fatalf("%d of %d requests were answered", got, 1+2+2*n)
			}
		})
	}
}
