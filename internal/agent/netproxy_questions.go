package agent

import (
	"sync"
	"time"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/proto"
)

// questions are the requests that a connection's server sends to its harness.
// Their ids count from 1, apart from the harness's own.
type questions struct {
	mu      sync.Mutex // guards all below
	last    int64
	waiting map[int64]chan policy.Answer
}

// open makes the id of a question, and the channel that its answer comes on.
func (q *questions) open() (id int64, answer chan policy.Answer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = make(map[int64]chan policy.Answer)
	}
	q.last++
	answer = make(chan policy.Answer, 1)
	q.waiting[q.last] = answer
	return q.last, answer
}

func (q *questions) close(id int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, id)
}

// answered takes an answer of the harness. It is false if nothing was ever asked
// under its id. An answer that comes too late, or again, says nothing.
func (q *questions) answered(m proto.Message) bool {
	id, ok := m.ID.Int64()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !ok || id < 1 || id > q.last {
		return false
	}
	if answer := q.waiting[id]; answer != nil {
		delete(q.waiting, id)
		answer <- policy.ParseAnswer(m.Result)
	}
	return true
}

// ask asks the harness about a target that a process's proxy wants to reach.
func (c *conn) ask(process string, t *policy.Target, patience time.Duration) policy.Answer {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	id, answer := c.asked.open()
	defer c.asked.close(id)
	f := proto.AppendInt(append(proto.NewFrame(256), `{"id":`...), id)
	f = proto.AppendString(append(f, `,"method":"network/policyRequest","params":{"processId":`...), process)
	f = t.AppendTarget(append(f, `,"request":{`...))
	c.out.notify(proto.Frame(append(f, "}}}"...)).Seal())
	select {
	case a := <-answer:
		return a
	case <-timer.C:
	case <-c.gone:
	}
	return policy.NoAnswer
}

// ask asks whoever is attached; nobody is there to answer for a detached
// session.
func (sess *session) ask(process string, t *policy.Target, patience time.Duration) policy.Answer {
	sess.server.mu.Lock()
	c := sess.conn
	sess.server.mu.Unlock()
	if c == nil || sess.out.Load() != c.out {
		return policy.NoAnswer
	}
	return c.ask(process, t, patience)
}
