package agent

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/confine"
	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
)

const (
	// maxHelperMessage bounds what a helper sends at once: the answer to
	// http/request with a body of 64 MiB, in base64, and its headers.
	maxHelperMessage = 96 << 20
	// helperPatience is how long a helper may work on one question.
	helperPatience = 60 * time.Second
)

// helperLink is a helper program that runs, and our end of its socket. The
// helper has the rights of commands, and may have been taken over by what it
// decodes: nothing that it sends is believed.
type helperLink struct {
	server  *Server
	program *process.Helper
	in      *proto.StreamConn
	out     *outbox
}

// helperSpec says how a helper is started.
type helperSpec struct {
	mode string
	// confine restricts what the helper can do; nil does not.
	confine *confine.Policy
	// files become the helper's descriptors from 4 up; they stay the caller's.
	files []int
}

// startHelper starts the helper program, as the user of commands and with the
// server's environment. It is the only place that does. A helper counts as a
// process that runs, and end has to be called.
func (s *Server) startHelper(spec helperSpec) (*helperLink, error) {
	o := &s.opts
	if o.Helper == "" {
		return nil, proto.Errorf(proto.CodeInternal, "this executor has no helper program")
	}
	if err := s.countProcess(); err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		s.running.Add(-1)
		return nil, proto.Errorf(proto.CodeInternal, "start helper: %s", err)
	}
	program, err := process.StartHelper(process.HelperSpec{
		Path: o.Helper, Argv: []string{"exec-helper", spec.mode}, Env: o.Env, Dirs: []string{o.Cwd, o.Home},
		Identity: o.Identity, Confine: spec.confine, OOMScoreAdj: o.OOMScoreAdj, Files: append([]int{pair[1]}, spec.files...),
	})
	_ = unix.Close(pair[1])
	if err != nil {
		_ = unix.Close(pair[0])
		s.running.Add(-1)
		return nil, err
	}
	limit := maxHelperMessage
	if spec.mode == proxyMode {
		limit = policy.MaxMessage
	}
	in := proto.NewStreamConn(&socket{fd: pair[0]}, limit)
	return &helperLink{server: s, program: program, in: in, out: newOutbox(in)}, nil
}

// countProcess counts one more process that runs, if not too many do.
func (s *Server) countProcess() error {
	if n := s.running.Add(1); s.opts.MaxProcesses > 0 && n > int64(s.opts.MaxProcesses) {
		s.running.Add(-1)
		return proto.Errorf(proto.CodeInternal, "%s: %d processes run, which is the limit", proto.ErrnoText(unix.EAGAIN), s.opts.MaxProcesses)
	}
	return nil
}

// send sends a request. What is wrong with the socket, the reader finds out.
func (l *helperLink) send(id uint64, method string, params []byte) {
	f := fmt.Appendf(proto.NewFrame(64+len(params)), `{"id":%d,"method":"%s","params":`, id, method)
	l.out.notify(proto.Frame(append(append(f, params...), '}')).Seal())
}

// hangUp ends the conversation: whoever reads from the helper gets to know. It
// may be called at any time.
func (l *helperLink) hangUp() { l.out.close() }

// end kills the helper and waits for its end. It is called once.
func (l *helperLink) end() {
	l.hangUp()
	l.program.End()
	l.server.running.Add(-1)
}

// askHelper asks a helper of its own one question, and gives up when the
// connection ends. check says whether a result has the shape that it should have.
func (c *conn) askHelper(spec helperSpec, method string, params []byte, check func(proto.Value) bool) (proto.Result, error) {
	l, err := c.server.startHelper(spec)
	if err != nil {
		return nil, err
	}
	defer l.end()
	answered := make(chan struct{})
	defer close(answered)
	go func() {
		timer := time.NewTimer(helperPatience)
		defer timer.Stop()
		select {
		case <-answered:
		case <-c.gone:
			l.hangUp()
		case <-timer.C:
			l.hangUp()
		}
	}()
	l.send(1, method, params)
	f, err := l.in.ReadFrame()
	if err != nil {
		return nil, errHelperEnded(method)
	}
	v, err := proto.Parse(f.Body())
	if err != nil {
		return nil, errHelperEnded(method)
	}
	return helperAnswer(1, f, v, method, check)
}

func errHelperEnded(method string) error {
	return proto.Errorf(proto.CodeInternal, "%s failed: the helper program ended", method)
}

// helperAnswer takes the result or the error out of a helper's answer to the
// request of that id. The result is the frame's own text, of which check has
// seen all.
func helperAnswer(id uint64, f proto.Frame, v proto.Value, method string, check func(proto.Value) bool) (proto.Result, error) {
	if e := v.Get("error"); e.Kind == proto.Object {
		code, _ := e.Get("code").Int64()
		message := e.Get("message")
		if message.Kind != proto.String || len(message.Raw()) > 64<<10 {
			return nil, errHelperEnded(method)
		}
		switch code {
		case proto.CodeInvalidParams, proto.CodeInvalidRequest:
			return nil, proto.Errorf(int(code), "%s", message.Str())
		}
		return nil, proto.Errorf(proto.CodeInternal, "%s", message.Str())
	}
	prefix := fmt.Sprintf(`{"id":%d,"result":`, id)
	body := f.Body()
	if v.Len() != 2 || len(body) <= len(prefix) || string(body[:len(prefix)]) != prefix || !check(v.Get("result")) {
		return nil, errHelperEnded(method)
	}
	return proto.JSON(body[len(prefix) : len(body)-1]), nil
}
