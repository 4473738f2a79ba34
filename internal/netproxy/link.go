package netproxy

import (
	"context"
	"errors"
	"sync"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/proto"
)

// link is a proxy process's line to the agent.
type link struct {
	agent proto.Conn
	gone  chan struct{} // closed when nothing comes from the agent any more

	writing sync.Mutex // orders writes to the agent

	mu      sync.Mutex // guards all below; not held over a write
	last    uint64
	pending map[uint64]chan policy.Answer
}

func (l *link) send(f proto.Frame) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.agent.WriteFrames(f)
}

// report returns when the agent has told the client. Without an agent the process
// is about to end.
func (l *link) report(d *policy.Decision) { l.request(context.Background(), d.Frame) }

// ask puts a question to the agent, which sees to it that every question has an
// answer in time.
func (l *link) ask(ctx context.Context, t policy.Target) policy.Answer {
	return l.request(ctx, func(id uint64) proto.Frame { return policy.QuestionFrame(id, &t) })
}

// request sends a request to the agent and waits for the answer.
func (l *link) request(ctx context.Context, frame func(id uint64) proto.Frame) policy.Answer {
	answer := make(chan policy.Answer, 1)
	l.mu.Lock()
	l.last++
	id := l.last
	l.pending[id] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.pending, id)
		l.mu.Unlock()
	}()
	if l.send(frame(id)) != nil {
		return policy.NoAnswer
	}
	select {
	case a := <-answer:
		return a
	case <-ctx.Done():
	case <-l.gone:
	}
	return policy.NoAnswer
}

// answers passes the agent's answers on until its end closes or ctx ends.
func (l *link) answers(ctx context.Context) error {
	defer close(l.gone)
	defer context.AfterFunc(ctx, func() { _ = l.agent.Close() })()
	for {
		f, err := l.agent.ReadFrame()
		if err != nil {
			return ctx.Err()
		}
		m, err := proto.ParseMessage(f.Body())
		id, ok := m.ID.Uint64()
		if err != nil || m.Kind != proto.Answer || !ok {
			return errors.New("the agent sent something else than an answer")
		}
		l.mu.Lock()
		answer := l.pending[id]
		delete(l.pending, id)
		l.mu.Unlock()
		if answer != nil {
			answer <- policy.ParseAnswer(m.Result)
		}
	}
}
