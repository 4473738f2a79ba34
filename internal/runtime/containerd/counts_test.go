package containerd

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// An agent that says nothing, or something else than two numbers, or much, has no
// counts.
func TestCountsOfAHostileAgentAreRefused(t *testing.T) {
	for _, text := range []string{``, `{"sessions":-1,"processes":0}`, string(make([]byte, 2*proto.MaxCounts))} {
		ours, agent := unixPair(t)
		go func() { _, _ = agent.Write(proto.FrameOf([]byte(text))) }()
		if c, err := askCounts(t.Context(), ours); err == nil {
			t.Errorf("%.40q is taken for %+v", text, c)
		}
	}
	ours, agent := unixPair(t)
	_ = agent.Close()
	if c, err := askCounts(t.Context(), ours); err == nil {
		t.Errorf("an end is taken for %+v", c)
	}
	ours, _ = unixPair(t) // it never answers
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if c, err := askCounts(ctx, ours); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silence is taken for %+v", c)
	}
}

func TestCountsAreAsked(t *testing.T) {
	ours, agent := unixPair(t)
	want := proto.Counts{Sessions: 2, Processes: 5}
	go func() {
		c := proto.NewStreamConn(agent, proto.MaxRequest)
		f, err := c.ReadFrame()
		if err != nil {
			return
		}
		if h, err := proto.ParseHello(f.Body()); err == nil && h.Count {
			_ = c.WriteFrames(want.Frame())
		}
	}()
	if got, err := askCounts(t.Context(), ours); err != nil || got != want {
		t.Errorf("they are %+v, %v", got, err)
	}
}
