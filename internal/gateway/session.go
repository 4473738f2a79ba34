package gateway

import (
	"context"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/runtime"
)

// serveSession gives a new session an environment of its own, whose name is the
// session's id, so that a resume finds it without a table.
func (g *Gateway) serveSession(ctx context.Context, c proto.Conn, hello proto.Hello) {
	// Until a session is asked for there is no environment to ask. A server
	// that will never have a session says what there is to say meanwhile.
	lobby := agent.NewLobby(hello)
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return
		}
		resume, isNew := wanted(f)
		if isNew {
			hello.SessionID = proto.NewSessionID()
			spec := g.opts.Spec(hello.SessionID)
			spec.Ephemeral = true // nobody can ask for it once the session has ended
			g.serveNamed(ctx, pushBack(c, f), spec, hello)
			return
		}
		if sb := g.Living(resume); sb != nil {
			hello.SessionID = resume // and no other in this environment
			g.join(ctx, pushBack(c, f), sb, hello)
			return
		}
		answer, ok := lobby.Answer(f)
		if len(answer) > 0 && c.WriteFrames(answer) != nil || !ok {
			return
		}
	}
}

// wanted tells whether a message asks for a new session or to resume one.
func wanted(f proto.Frame) (resume string, isNew bool) {
	m, err := proto.ParseMessage(f.Body())
	if err != nil || m.Kind != proto.Request || m.Method != "initialize" || m.Params.Get("clientName").Kind != proto.String {
		return "", false
	}
	switch id := m.Params.Get("resumeSessionId"); id.Kind {
	case proto.Absent, proto.Null:
		return "", true
	case proto.String:
		return id.Str(), false
	}
	return "", false
}

// Living returns the sandbox of that name, or nil. It makes none: one that a
// resume comes too late for would have no session that ever ended it.
func (g *Gateway) Living(name string) runtime.Sandbox {
	g.mu.Lock()
	e := g.envs[name]
	g.mu.Unlock()
	if e == nil {
		return nil
	}
	select {
	case <-e.ready:
	default: // nobody can know its session yet
		return nil
	}
	if e.err != nil {
		return nil
	}
	select {
	case <-e.sandbox.Done():
		return nil
	default:
		return e.sandbox
	}
}

// returned is a connection with one frame put back.
type returned struct {
	proto.Conn
	first proto.Frame
}

func pushBack(c proto.Conn, f proto.Frame) proto.Conn {
	r := &returned{c, f}
	if w, ok := c.(proto.Watcher); ok {
		return watched{r, w}
	}
	return r
}

// watched is a returned one that keeps what the connection can do besides.
type watched struct {
	*returned
	watcher proto.Watcher
}

// AwaitEnd implements proto.Watcher.
func (w watched) AwaitEnd(stop <-chan struct{}) bool { return w.watcher.AwaitEnd(stop) }

// ReadFrame implements proto.Conn.
func (r *returned) ReadFrame() (proto.Frame, error) {
	if f := r.first; f != nil {
		r.first = nil
		return f, nil
	}
	return r.Conn.ReadFrame()
}
