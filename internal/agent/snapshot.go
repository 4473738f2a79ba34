package agent

import (
	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/snapshot"
)

// maxDump is how much of what a login shell prints about itself is kept, in
// bytes.
const maxDump = 2 << 20

// snapshotParam reads the member "shellSnapshot".
func (s *startParams) snapshotParam(p *proto.Params) {
	sub := p.Sub(p.Nullable("shellSnapshot"), "ShellSnapshot")
	if sub == nil {
		return
	}
	w := &snapshot.Wish{Scope: sub.String("scopeId"), Policy: s.policy}
	if shell := sub.Sub(sub.Required("shell"), "Shell"); shell != nil {
		w.Name, w.Path = shell.String("name"), shell.String("path")
		sub.Join(shell)
	}
	p.Join(sub)
	s.snapshot = w
}

// mayTakeSnapshot says whether a snapshot may stand in for the login shell. What
// confines a command would have to confine the taking as well.
func (s *startParams) mayTakeSnapshot() bool {
	if s.snapshot == nil || s.network.enforce || s.network.proxy != nil {
		return false
	}
	policy, err := commandPolicy(s.sandbox, "/", nil)
	return err == nil && policy.Unconfined()
}

// waits says whether the start would have to wait for a login shell.
func (s *startParams) waits(c *conn) bool {
	if !s.mayTakeSnapshot() {
		return false
	}
	spec := s.spec
	spec.Cwd, _ = s.cwd.Native()
	spec.Env = s.policy.Apply(c.server.opts.Env, s.spec.Env)
	return c.session.Load().snapshots.Waits(s.snapshot, &spec)
}

// snapshotted has a command start from a snapshot if it may. It may be
// started until release is called.
func (s *startParams) snapshotted(c *conn, spec *process.Spec) (release func()) {
	if !s.mayTakeSnapshot() {
		return func() {}
	}
	return c.session.Load().snapshots.Use(s.snapshot, spec, s.pinned, c.server.runAside)
}

// pinned says whether the harness has set a variable itself.
func (s *startParams) pinned(name string) bool {
	if _, ok := s.spec.Env[name]; ok {
		return true
	}
	for _, pair := range s.meta {
		if pair[0] == name {
			return true
		}
	}
	if s.policy == nil {
		return false
	}
	_, ok := s.policy.Set[name]
	return ok
}

// runAside runs a command that no harness knows of. It is a snapshot.Runner.
func (s *Server) runAside(spec process.Spec, cancel <-chan struct{}) (stdout, stderr []byte, ok bool) {
	p, err := s.startProcess(spec, process.Options{
		OutputBytes: maxDump,
		OOMScoreAdj: s.opts.OOMScoreAdj,
		Notify:      func([]byte) {},
		Closed:      func(*process.Process) { s.running.Add(-1) },
	})
	if err != nil {
		return nil, nil, false
	}
	printed, code, ended := p.Finish(cancel)
	return printed[process.Stdout], printed[process.Stderr], ended && code == 0
}
