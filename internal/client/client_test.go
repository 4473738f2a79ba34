package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/proto"
)

// pair is a client and the connection on its other side.
func pair(t *testing.T, onNotify func(string, proto.Value)) (*Client, *proto.StreamConn) {
	t.Helper()
	ours, theirs := net.Pipe()
	c := New(proto.NewStreamConn(ours, proto.MaxAnswer), onNotify)
	t.Cleanup(func() { _, _ = c.Close(), theirs.Close() })
	return c, proto.NewStreamConn(theirs, proto.MaxRequest)
}

func TestAClientOfAnAgent(t *testing.T) {
	s := agent.New(agent.Options{Cwd: "/", Home: "/"})
	t.Cleanup(s.Close)
	connect := func() *Client {
		c, theirs := pair(t, nil)
		go func() { _ = s.Serve(theirs, proto.Hello{Peer: "test"}) }()
		return c
	}
	ctx := t.Context()
	c := connect()
	id, err := c.Initialize(ctx, "test", "")
	if err != nil || len(id) != 36 {
		t.Fatalf("the session is %q, %v", id, err)
	}
	status, err := c.Call(ctx, "environment/status", nil)
	if err != nil || status.Get("status").Str() != "ready" {
		t.Errorf("the status is %v, %v", status, err)
	}
	_, err = c.Call(ctx, "process/start", map[string]any{"processId": "p", "argv": []string{"/no/such"}, "cwd": "file:///", "env": map[string]string{}, "tty": false})
	if e, ok := errors.AsType[*proto.Error](err); !ok || e.Code != proto.CodeInternal || e.Kind != "spawnNotFound" {
		t.Errorf("an error answer is %v", err)
	}
	other := connect()
	_, err = other.Initialize(ctx, "test", id)
	if e, ok := errors.AsType[*proto.Error](err); !ok || e.Code != proto.CodeAttached {
		t.Errorf("a resume of an attached session: %v", err)
	}
	_ = c.Close()
	<-c.Done()
	if _, err := c.Call(ctx, "environment/status", nil); err == nil {
		t.Error("a call after the end succeeds")
	}
}

func TestCallsAtOnceGetTheirOwnAnswers(t *testing.T) {
	c, theirs := pair(t, nil)
	const n = 50
	go func() { // answers in reverse
		var answers []proto.Frame
		for range n {
			f, err := theirs.ReadFrame()
			if err != nil {
				t.Error(err)
				return
			}
			m, err := proto.ParseMessage(f.Body())
			if err != nil {
				t.Error(err)
				return
			}
			answers = append(answers, proto.ResultFrame(m.ID, proto.JSON(proto.AppendString(nil, m.Method))))
		}
		for i := range answers {
			_ = theirs.WriteFrames(answers[len(answers)-1-i])
		}
	}()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			method := fmt.Sprintf("m%d", i)
			if got, err := c.Call(t.Context(), method, nil); err != nil || got.Str() != method {
				t.Errorf("%s is answered %q, %v", method, got.Str(), err)
			}
		})
	}
	wg.Wait()
}

func TestNotificationsComeInTheirOrder(t *testing.T) {
	got := make(chan string, 10)
	_, theirs := pair(t, func(method string, params proto.Value) { got <- method + " " + string(params.Get("i").Raw()) })
	for i := range 5 {
		if err := theirs.WriteFrames(proto.FrameOf(fmt.Appendf(nil, `{"method":"n","params":{"i":%d}}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		if s := <-got; s != fmt.Sprintf("n %d", i) {
			t.Errorf("notification %d is %s", i, s)
		}
	}
}

func TestTheEndOfTheConnectionEndsCalls(t *testing.T) {
	for name, end := range map[string]func(*Client, *proto.StreamConn){
		"the server ends it":       func(_ *Client, theirs *proto.StreamConn) { _ = theirs.Close() },
		"the client ends it":       func(c *Client, _ *proto.StreamConn) { _ = c.Close() },
		"the server talks garbage": func(_ *Client, theirs *proto.StreamConn) { _ = theirs.WriteFrames(proto.FrameOf([]byte("x"))) },
	} {
		c, theirs := pair(t, nil)
		failed := make(chan error)
		go func() {
			_, err := c.Call(t.Context(), "m", nil)
			failed <- err
		}()
		if _, err := theirs.ReadFrame(); err != nil {
			t.Fatal(err)
		}
		end(c, theirs)
		if err := <-failed; err == nil || strings.HasPrefix(name, "the server ends") && err.Error() != "the server has ended the connection" {
			t.Errorf("%s: %v", name, err)
		}
		<-c.Done()
	}
}

func TestACallCanBeGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, theirs := pair(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, "m", nil)
			failed <- err
		}()
		if _, err := theirs.ReadFrame(); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		// The answer comes too late, and surprises nobody; nor do answers that
		// nobody has asked for.
		for _, text := range []string{`{"id":1,"result":1}`, `{"id":99,"result":1}`, `{"id":"x","error":{"code":1,"message":"m"}}`, `{"id":5,"method":"request"}`} {
			if err := theirs.WriteFrames(proto.FrameOf([]byte(text))); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(c.pending) != 0 {
			t.Errorf("%d calls are pending", len(c.pending))
		}
		_ = c.Close()
		<-c.Done()
	})
}
