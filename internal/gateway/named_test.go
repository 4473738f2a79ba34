package gateway

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/runtime"
)

// named connects by another way than the listener.
func named(t *testing.T, g *Gateway, name string, hello proto.Hello) *harness {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		c := proto.NewStreamConn(theirs, proto.MaxRequest)
		g.ServeNamed(context.Background(), c, name, hello)
		_ = c.Close()
	}()
	t.Cleanup(func() { _ = ours.Close() })
	return &harness{t, proto.NewStreamConn(ours, proto.MaxAnswer)}
}

func TestOtherWaysLeadToTheSameEnvironment(t *testing.T) {
	inBubble(t, Options{PerSession: true}, func(t *testing.T, m *memory, g *Gateway) {
		connect(t, g, "a").initialize("")
		h := named(t, g, "a", proto.Hello{Peer: "relay x", Relayed: true})
		h.initialize("")
		h.send(`{}`)
		if f, err := h.c.ReadFrame(); err == nil {
			t.Errorf("what ends a relayed connection is answered %s", f.Body())
		}
		m.logged(t, "+a -")
	})
}

func TestRemoveEndsOneEnvironment(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, m *memory, g *Gateway) {
		connect(t, g, "a").initialize("")
		connect(t, g, "b").initialize("")
		if err := g.Remove(context.Background(), "a"); err != nil {
			t.Error(err)
		}
		m.logged(t, "+a+b -a")
		for _, name := range []string{"a", "c", ""} {
			if err := g.Remove(context.Background(), name); !errors.Is(err, ErrUnknown) {
				t.Errorf("%q: %v", name, err)
			}
		}
		connect(t, g, "a").initialize("") // it may be made anew
		m.logged(t, "+a+b+a -a")
	})
}

// An environment in the making is removed when it is made; who cannot wait for it
// is told.
func TestRemoveWaits(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, m *memory, g *Gateway) {
		m.set(func() { m.create = make(chan struct{}) })
		ctx, cancel := context.WithCancel(context.Background())
		opened := make(chan error, 1)
		go func() {
			_, err := g.Open(ctx, runtime.Spec{Name: "a"})
			opened <- err
		}()
		synctest.Wait()
		cancel() // a connection that waited on would have it made anew, if it is late
		if err := <-opened; !errors.Is(err, context.Canceled) {
			t.Errorf("who leaves gets %v", err)
		}
		ctx, cancel = context.WithCancel(context.Background())
		removed := make(chan error, 2)
		go func() { removed <- g.Remove(ctx, "a") }()
		synctest.Wait()
		cancel()
		if err := <-removed; !errors.Is(err, context.Canceled) {
			t.Errorf("who cannot wait gets %v", err)
		}
		go func() { removed <- g.Remove(context.Background(), "a") }()
		close(m.create)
		if err := <-removed; err != nil {
			t.Error(err)
		}
		m.logged(t, "+a -a")
	})
}

func TestRemoveOfOneThatFailsToStart(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, m *memory, g *Gateway) {
		m.set(func() { m.create, m.err = make(chan struct{}), errors.New("no") })
		connect(t, g, "a")
		synctest.Wait()
		removed := make(chan error, 1)
		go func() { removed <- g.Remove(context.Background(), "a") }()
		synctest.Wait()
		close(m.create)
		if err := <-removed; !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
	})
}

func TestCensus(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, m *memory, g *Gateway) {
		connect(t, g, "a").initialize("")
		connect(t, g, "a").initialize("")
		connect(t, g, "mute").initialize("")
		m.box("mute").mute = true
		m.set(func() { m.create = make(chan struct{}) })
		connect(t, g, "new")
		synctest.Wait()
		want := map[string]*proto.Counts{"a": {Sessions: 2}, "mute": nil, "new": {}}
		if diff := cmp.Diff(want, g.Census(context.Background())); diff != "" {
			t.Error(diff)
		}
		close(m.create)
	})
}
