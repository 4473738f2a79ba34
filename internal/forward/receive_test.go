package forward

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestTheIDOfAnAnswer(t *testing.T) {
	for _, c := range []struct{ head, tail, want string }{
		{`{"id":5,"result":"`, `xxx"}`, `5`},
		{`{ "jsonrpc": "2.0" , "id" : -5 , "result":"`, `xxx"}`, `-5`},
		{`{"id":"a\"b","result":"`, `xxx"}`, `"a\"b"`},
		{`{"result":"`, `xxx","id":5}`, `5`},
		{`{"result":"`, `xxx" , "id" : "s" } `, `"s"`},
		{`{"result":"`, `xxx",\"id\":5}"}`, ``},
		{`{"result":{"a":"`, `xxx","id":5}}`, ``},
		{`{"result":{"id":5,"a":"`, `xxx"}}`, ``},
		{`{"id":99999999999999999999,"result":"`, `xxx"}`, ``},
		{`{"method":"`, `xxx"}`, ``},
	} {
		id, ok := idOf([]byte(c.head), []byte(c.tail))
		got := ""
		if ok {
			f := proto.ErrorFrame(id, &proto.Error{})
			got = string(f.Body()[len(`{"error":{"code":0,"message":""},"id":`) : len(f.Body())-1])
		}
		if got != c.want {
			t.Errorf("%s … %s: the id is %q; expected %q", c.head, c.tail, got, c.want)
		}
	}
}

// A server does not have as many large messages held as there are connections.
func TestLargeMessagesTakeTurns(t *testing.T) {
	text := strings.Repeat("x", 2*roomy)
	large := semaphore.NewWeighted(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	first, second := receiver{ctx: t.Context(), large: large}, receiver{ctx: ctx, large: large}
	read := func(r *receiver, text string) error {
		f, err := r.frame(strings.NewReader(text))
		if err == nil && string(f.Body()) != text {
			t.Errorf("%d bytes come as %d", len(text), len(f.Body()))
		}
		return err
	}
	if err := errors.Join(read(&first, text), read(&second, "small"), read(&first, text)); err != nil {
		t.Fatal(err)
	}
	if err := read(&second, text); !errors.Is(err, context.Canceled) {
		t.Errorf("a second one: %v", err)
	}
	second.ctx = t.Context()
	if err := errors.Join(read(&first, "small"), read(&second, text)); err != nil {
		t.Error(err)
	}
	second.leave()
	if !large.TryAcquire(1) {
		t.Error("a turn is not given back")
	}
}

// Whatever a server sends: if it is an answer, nobody else's id is found in it.
func FuzzIDOf(f *testing.F) {
	for _, s := range []string{`{"id":1,"result":{"id":2}}`, `{"result":{"x":1,"id":2},"id":3}`, `{"result":",\"id\":4}","id":"\""}`, `{"error":{"code":1,"message":""},"id":"a"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := proto.ParseMessage(text)
		if err != nil {
			return
		}
		if id, ok := idOf(text, text); ok && string(proto.ErrorFrame(id, &proto.Error{})) != string(proto.ErrorFrame(m.ID, &proto.Error{})) {
			t.Errorf("another id than its own is found in %s", text)
		}
	})
}
