package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"github.com/exec-server/exec-server/internal/runtime"
)

func TestTheNumberOfEnvironmentsIsLimited(t *testing.T) {
	inBubble(t, Options{MaxEnvironments: 2}, func(t *testing.T, m *memory, g *Gateway) {
		connect(t, g, "a").initialize("")
		connect(t, g, "b").initialize("")
		connect(t, g, "c").expect(`{"id":1,"method":"initialize","params":{"clientName":"x"}}`,
			`{"error":{"code":-32603,"message":"environment c: 2 environments live, which is the most that limits.environments allows"},"id":1}`)
		connect(t, g, "a").initialize("") // these live already
		m.box("b").end()
		m.logged(t, "+a+b -b")
		connect(t, g, "c").initialize("")
	})
}

func TestASuccessorWaitsForTheRemoval(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, m *memory, g *Gateway) {
		connect(t, g, "a").initialize("")
		m.set(func() { m.remove = make(chan struct{}) })
		m.box("a").end()
		synctest.Wait()
		opened := make(chan error, 1)
		go func() {
			_, err := g.Open(context.Background(), runtime.Spec{Name: "a"})
			opened <- err
		}()
		m.logged(t, "+a -") // neither removed nor made anew
		if len(opened) > 0 {
			t.Fatal("an environment that has ended is given away")
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := g.Open(ctx, runtime.Spec{Name: "a"}); !errors.Is(err, context.Canceled) {
			t.Errorf("who cannot wait gets %v", err)
		}
		close(m.remove)
		if err := <-opened; err != nil {
			t.Error(err)
		}
		m.logged(t, "+a+a -a")
	})
}

func TestCloseRemovesAll(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, m *memory, g *Gateway) {
		h := connect(t, g, "a")
		h.initialize("")
		connect(t, g, "b").initialize("")
		m.set(func() { m.create = make(chan struct{}) })
		late := connect(t, g, "c")
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- g.Close(context.Background()) }()
		synctest.Wait()
		if len(closed) > 0 {
			t.Fatal("it does not wait for the environment in the making")
		}
		connect(t, g, "d").expect(`{"id":1,"method":"x"}`, `{"error":{"code":-32603,"message":"environment d: the server is shutting down"},"id":1}`)
		close(m.create)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(m.boxes) > 0 || len(m.removed) != 3 || len(g.Names()) > 0 {
			t.Errorf("left are %v and %v", m.boxes, g.Names())
		}
		_ = late.c.Close()
	})
}

func TestAdoptedEnvironmentsAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		sb := m.add(runtime.Spec{Name: "old"})
		g := New(Options{Runtime: m, Log: zerolog.Nop(), Spec: func(name string) runtime.Spec { return runtime.Spec{Name: name} }}, []runtime.Sandbox{sb})
		connect(t, g, "old").initialize("")
		m.logged(t, "+ -")
		sb.end()
		m.logged(t, "+ -old")
		connect(t, g, "old").initialize("")
		m.logged(t, "+old -old")
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
