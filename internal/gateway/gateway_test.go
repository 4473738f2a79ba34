package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/exec-server/exec-server/internal/runtime"
)

func TestAnEnvironmentIsMadeOnce(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, m *memory, g *Gateway) {
		m.set(func() { m.create = make(chan struct{}) })
		const n = 20
		got := make(chan runtime.Sandbox, n)
		for range n {
			go func() {
				sb, err := g.Open(context.Background(), runtime.Spec{Name: "a"})
				if err != nil {
					t.Error(err)
				}
				got <- sb
			}()
		}
		m.logged(t, "+a -")
		close(m.create)
		first := <-got
		for range n - 1 {
			if sb := <-got; sb != first {
				t.Error("two sandboxes have one name")
			}
		}
		m.logged(t, "+a -")
	})
}

func TestConnectionsOfOneNameShareAnEnvironment(t *testing.T) {
	inBubble(t, Options{Default: "main"}, func(t *testing.T, m *memory, g *Gateway) {
		id := connect(t, g, "a").initialize("")
		second := connect(t, g, "a")
		second.expect(`{"id":1,"method":"initialize","params":{"clientName":"x","resumeSessionId":"`+id+`"}}`,
			`{"error":{"code":-32010,"message":"session `+id+` is already attached to another connection"},"id":1}`)
		connect(t, g, "b").expect(`{"id":1,"method":"initialize","params":{"clientName":"x","resumeSessionId":"`+id+`"}}`,
			`{"error":{"code":-32600,"message":"unknown session id `+id+`"},"id":1}`)
		connect(t, g, "").initialize("")
		m.logged(t, "+a+b+main -")
		names := g.Names()
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "a b main" {
			t.Errorf("the names are %s", got)
		}
		expire()
		m.logged(t, "+a+b+main -") // a named environment outlives its sessions
	})
}

func TestWhoGoesAwayDoesNotSpoilItForOthers(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, m *memory, g *Gateway) {
		m.set(func() { m.create = make(chan struct{}) })
		ctx, cancel := context.WithCancel(context.Background())
		gaveUp := make(chan error)
		go func() {
			_, err := g.Open(ctx, runtime.Spec{Name: "a"})
			gaveUp <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("the first gets %v", err)
		}
		close(m.create)
		connect(t, g, "a").initialize("")
		m.logged(t, "+a -")
	})
}

func TestAFailureReachesTheHarness(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, m *memory, g *Gateway) {
		m.set(func() { m.err = errors.New("no image \"x\"") })
		h := connect(t, g, "a")
		const want = `{"error":{"code":-32603,"message":"environment a: no image \"x\""},"id":`
		h.expect(`{"id":1,"method":"initialize","params":{"clientName":"x"}}`, want+`1}`)
		h.expect(`{"id":"s","method":"environment/status"}`, want+`"s"}`)
		h.send(`{"method":"initialized"}`)
		h.gone()
		garbage := connect(t, g, "a")
		garbage.send(`x`)
		garbage.gone()
		m.logged(t, "+a+a -")
		m.set(func() { m.err = nil })
		connect(t, g, "a").initialize("") // the next tries again
		m.logged(t, "+a+a+a -")
	})
}

// What the harness is called, and how many of its requests run at once, is the
// gateway's to say.
func TestTheHelloIsTheGateways(t *testing.T) {
	inBubble(t, Options{Concurrency: 7}, func(t *testing.T, m *memory, g *Gateway) {
		h := connect(t, g, "a")
		h.expect(`x`, `{"error":{"code":-32600,"message":"failed to parse websocket JSON-RPC message from exec-server websocket 127.0.0.1:5: expected value at line 1 column 1"},"id":-1}`)
		h.expect(`{"id":1,"method":"process/resize","params":{}}`, "{\"error\":{\"code\":-32601,\"message\":\"exec-server stub does not implement `process/resize` yet\"},\"id\":1}")
	})
}
