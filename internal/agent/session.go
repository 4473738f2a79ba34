package agent

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/snapshot"
)

// session owns processes. It outlives its connection for a while.
type session struct {
	id     string
	server *Server
	chosen bool // the gateway chose the id

	// out is where notifications go; nil while nobody is attached.
	out atomic.Pointer[outbox]

	snapshots snapshot.Store

	conn  *conn       // the attached connection; guarded by Server.mu
	timer *time.Timer // ends a detached session; guarded by Server.mu

	mu        sync.Mutex // guards all below
	ended     bool
	processes map[string]*process.Process // nil while a start is under way
}

// open makes a session that is attached to c.
func (s *Server) open(c *conn) (*session, error) {
	id := c.hello.SessionID
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" {
		id = proto.NewSessionID()
	} else if s.sessions[id] != nil {
		return nil, proto.Invalid("session id %s is taken", id)
	}
	sess := &session{id: id, server: s, chosen: c.hello.SessionID != "", conn: c, processes: make(map[string]*process.Process)}
	s.sessions[id] = sess
	return sess, nil
}

// missed ends what a session of the gateway's choosing was made for, if it was
// never opened.
func (s *Server) missed(id string) {
	s.mu.Lock()
	opened := s.sessions[id] != nil
	s.mu.Unlock()
	if !opened && s.opts.LastSession != nil {
		s.opts.LastSession(id)
	}
}

// resume attaches a detached session to c.
func (s *Server) resume(c *conn, id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[id]
	switch {
	case sess == nil:
		return nil, proto.Invalid("unknown session id %s", id)
	case sess.conn != nil:
		return nil, proto.Errorf(proto.CodeAttached, "session %s is already attached to another connection", id)
	}
	sess.conn = c
	sess.timer.Stop()
	return sess, nil
}

// detach leaves the session of a connection that ended to itself.
func (s *Server) detach(sess *session) {
	sess.out.Store(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	sess.conn = nil
	var timer *time.Timer
	timer = time.AfterFunc(s.opts.Detach, func() {
		s.mu.Lock()
		expired := sess.conn == nil && sess.timer == timer && s.sessions[sess.id] == sess
		if expired {
			delete(s.sessions, sess.id)
		}
		s.mu.Unlock()
		if expired {
			sess.end()
		}
	})
	sess.timer = timer
}

// end kills what the session owns. The session must be out of the server's map.
func (sess *session) end() {
	sess.mu.Lock()
	sess.ended = true
	all := make([]*process.Process, 0, len(sess.processes))
	for _, p := range sess.processes {
		if p != nil {
			all = append(all, p)
		}
	}
	clear(sess.processes)
	sess.mu.Unlock()
	sess.snapshots.End()
	for _, p := range all {
		p.Abandon()
		sess.server.retained.forget(p)
	}
	if sess.chosen && sess.server.opts.LastSession != nil {
		sess.server.opts.LastSession(sess.id)
	}
}

// over says whether the session has ended.
func (sess *session) over() bool {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	return sess.ended
}

// notify sends a process's notifications to whoever is attached.
func (sess *session) notify(frames []byte) {
	if out := sess.out.Load(); out != nil {
		out.notify(frames)
	}
}

// start runs a command under an id that must be free, with the proxy that it
// needs; plan may be nil.
func (sess *session) start(spec process.Spec, plan *proxyPlan) (*process.Process, error) {
	sess.mu.Lock()
	_, taken := sess.processes[spec.ID]
	ended := sess.ended
	if !taken && !ended {
		sess.processes[spec.ID] = nil
	}
	sess.mu.Unlock()
	switch {
	case ended: // while a snapshot was taken
		return nil, proto.Invalid("session has ended")
	case taken:
		return nil, proto.Invalid("process %s already exists", spec.ID)
	}
	opts := &sess.server.opts
	var proxy *commandProxy
	var sockets proxySockets
	var unserved atomic.Bool // it was started, but what it needs beside it was not
	var err error
	if plan.alone() {
		// They are opened on the command's own loopback, and served once it runs.
		spec.Listen = func() (err error) {
			if sockets, err = plan.open(); err == nil {
				plan.announce(spec.Env, &sockets)
			}
			return err
		}
	} else if proxy, err = plan.begin(sess, &spec); err != nil {
		sess.free(spec.ID)
		return nil, err
	}
	p, err := sess.server.startProcess(spec, process.Options{
		OutputBytes: opts.OutputBytes,
		OOMScoreAdj: opts.OOMScoreAdj,
		Notify: func(frames []byte) {
			if !unserved.Load() {
				sess.notify(frames)
			}
		},
		Closed: func(p *process.Process) {
			proxy.stop()
			plan.release()
			sess.server.running.Add(-1)
			if sess.over() {
				return // nobody can ask for its output
			}
			sess.server.retained.add(p)
			time.AfterFunc(opts.KeepClosed, func() { sess.forget(p) })
		},
	})
	var late error
	if err == nil && len(sockets.files) > 0 {
		proxy, late = plan.launch(sess, spec.ID, &sockets)
	}
	sockets.close()
	sess.mu.Lock()
	if sess.ended && late == nil {
		late = proto.Invalid("session has ended")
	}
	if err != nil || late != nil {
		delete(sess.processes, spec.ID)
	} else {
		sess.processes[spec.ID] = p
	}
	sess.mu.Unlock()
	switch {
	case err != nil:
		proxy.stop()
	case late != nil:
		unserved.Store(true)
		p.Abandon()
		go p.Run()
		return nil, late
	}
	return p, err
}

// free gives the id of a start that failed back.
func (sess *session) free(id string) {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	delete(sess.processes, id)
}

// startProcess starts a process, if not too many run.
func (s *Server) startProcess(spec process.Spec, opts process.Options) (*process.Process, error) {
	if n := s.running.Add(1); s.opts.MaxProcesses > 0 && n > int64(s.opts.MaxProcesses) {
		s.running.Add(-1)
		return nil, &proto.Error{Code: proto.CodeInternal, Kind: "spawnFailed",
			Message: fmt.Sprintf("%s: %d processes run, which is the limit", proto.ErrnoText(unix.EAGAIN), s.opts.MaxProcesses)}
	}
	p, err := process.Start(spec, opts)
	if err != nil {
		s.running.Add(-1)
	}
	return p, err
}

func (sess *session) forget(p *process.Process) {
	sess.server.retained.forget(p)
	sess.mu.Lock()
	defer sess.mu.Unlock()
	if sess.processes[p.ID()] == p {
		delete(sess.processes, p.ID())
	}
}

// find looks a process up. starting says that its start is still under way.
func (sess *session) find(id string) (p *process.Process, starting bool) {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	p, known := sess.processes[id]
	return p, known && p == nil
}
