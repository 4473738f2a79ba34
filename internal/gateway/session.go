package gateway

import (
	"context"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/proto"
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
			g.serveNamed(ctx, pushBack(c, f), g.opts.Spec(hello.SessionID), hello)
			return
		}
		if resume != "" && g.has(resume) {
			g.serveNamed(ctx, pushBack(c, f), g.opts.Spec(resume), hello)
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

func (g *Gateway) has(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.envs[name] != nil
}

// returned is a connection with one frame put back.
type returned struct {
	proto.Conn
	first proto.Frame
}

func pushBack(c proto.Conn, f proto.Frame) proto.Conn { return &returned{c, f} }

// ReadFrame implements proto.Conn.
func (r *returned) ReadFrame() (proto.Frame, error) {
	if f := r.first; f != nil {
		r.first = nil
		return f, nil
	}
	return r.Conn.ReadFrame()
}
