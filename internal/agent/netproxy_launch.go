package agent

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
)

// proxyLink is our end of the line to a proxy process.
type proxyLink interface {
	ReadFrame() (proto.Frame, error)
	WriteFrames(frames []byte) error
	// hangUp has ReadFrame return; it may be called at any time, repeatedly.
	hangUp()
	// end kills the process and waits for its end. It is called once.
	end()
}

// proxyMode is the helper program's mode in which it is a proxy.
const proxyMode = "proxy"

// proxyHelper is the helper program as a proxy process.
type proxyHelper struct{ *helperLink }

func (p proxyHelper) ReadFrame() (proto.Frame, error) { return p.in.ReadFrame() }

func (p proxyHelper) WriteFrames(frames []byte) error { return p.in.WriteFrames(frames) }

func (s *Server) startProxyHelper(files []int) (proxyLink, error) {
	l, err := s.startHelper(helperSpec{mode: proxyMode, files: files})
	if err != nil {
		return nil, err
	}
	return proxyHelper{l}, nil
}

// maxQuestions of one command wait for answers at once; more are not asked.
const maxQuestions = 64

// commandProxy is the proxy process of one command.
type commandProxy struct {
	link    proxyLink
	sess    *session
	process string
	asks    *proxyParams
	stopped atomic.Bool
	waiting atomic.Int32  // questions; added to by serve alone
	writing chan struct{} // holds a token while somebody writes to the process
}

// launch starts the process that serves the sockets, which are closed here
// either way. It ends with stop, and by itself with the agent.
func (p *proxyPlan) launch(sess *session, process string, s *proxySockets) (*commandProxy, error) {
	link, err := sess.server.startProxy(s.files)
	s.close()
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeInternal, Kind: "spawnFailed", Message: "network proxy: " + err.Error()}
	}
	c := &commandProxy{link: link, sess: sess, process: process, asks: p.asks, writing: make(chan struct{}, 1)}
	go c.serve(p.config.Frame())
	return c, nil
}

// stop has the process end, of which nothing is passed on any more. It may be
// called more than once, and on nil.
func (c *commandProxy) stop() {
	if c != nil {
		c.stopped.Store(true)
		c.link.hangUp()
	}
}

// serve tells the process its configuration and passes on what it says. One that
// says what it should not is ended, and its command is without a way out.
func (c *commandProxy) serve(config proto.Frame) {
	defer c.link.end()
	if c.link.WriteFrames(config) != nil {
		return
	}
	for {
		f, err := c.link.ReadFrame()
		if err != nil || c.stopped.Load() || c.receive(f) != nil {
			return
		}
	}
}

var errUnexpected = errors.New("unexpected message from a network proxy")

func (c *commandProxy) receive(f proto.Frame) error {
	m, err := proto.ParseMessage(f.Body())
	if err != nil {
		return err
	}
	if m.Kind != proto.Request {
		return errUnexpected
	}
	id := m.ID.Clone()
	switch {
	case m.Method == "decision":
		d, err := policy.ParseDecision(m.Params)
		if err != nil {
			return err
		}
		c.sess.notify(decisionFrame(c.process, &d, time.Now()))
		c.answer(id, proto.Empty{})
		return nil
	case m.Method == "ask" && c.asks != nil:
		t, err := policy.ParseQuestion(m.Params)
		if err != nil {
			return err
		}
		if c.waiting.Load() >= maxQuestions {
			c.answer(id, policy.NoAnswer)
			return nil
		}
		c.waiting.Add(1)
		go func() {
			defer c.waiting.Add(-1)
			c.answer(id, c.sess.ask(c.process, &t, c.asks.patience()))
		}()
		return nil
	}
	return errUnexpected
}

func (c *commandProxy) answer(id proto.Value, r proto.Result) {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	_ = c.link.WriteFrames(proto.ResultFrame(id, r))
}

// decisionFrame is the notification about a decision.
func decisionFrame(process string, d *policy.Decision, at time.Time) proto.Frame {
	f := append(proto.NewFrame(512), `{"method":"network/policyDecision","params":{"processId":`...)
	f = append(proto.AppendString(f, process), `,"timestamp":"`...)
	f = append(at.UTC().AppendFormat(f, "2006-01-02T15:04:05.000Z"), `",`...)
	f = append(d.AppendMembers(f), "}}"...)
	return proto.Frame(f).Seal()
}

// begin starts what the plan wants beside a command, and makes the command's
// environment lead there. The sockets are on the caller's own loopback.
func (p *proxyPlan) begin(sess *session, spec *process.Spec) (*commandProxy, error) {
	if p == nil {
		return nil, nil
	}
	s, err := p.open()
	if err != nil {
		return nil, err
	}
	p.announce(spec.Env, &s)
	return p.launch(sess, spec.ID, &s)
}
