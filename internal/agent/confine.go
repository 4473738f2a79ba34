package agent

import (
	"errors"

	"github.com/exec-server/exec-server/internal/confine"
	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
)

var errMXC = &proto.Error{Code: proto.CodeInvalidParams, Kind: "sandboxUnavailable", Message: "native MXC is unavailable on this executor"}

// commandPolicy is what a command's profile comes down to; nil without one.
func commandPolicy(s *proto.Sandbox, cwd string, env map[string]string) (*confine.Policy, error) {
	if s == nil {
		return nil, nil
	}
	if s.MXC {
		return nil, errMXC
	}
	policy, err := confine.Resolve(s, confine.Context{Cwd: cwd, TmpDir: env["TMPDIR"]})
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeInvalidParams, Kind: "sandboxPreparation", Message: "failed to prepare process sandbox: " + err.Error()}
	}
	return policy, nil
}

// confineFiles is the fs.Confine of all connections.
func (s *Server) confineFiles(wish *proto.Sandbox, writes bool, work func() error) error {
	policy, err := s.filePolicy(wish)
	if err != nil {
		return err
	}
	if policy == nil || !writes && policy.ReadsAll() || policy.WritesAll() {
		process.Confiner().Sweep()
		return work()
	}
	if wish.MXC {
		return proto.Invalid("failed to prepare fs sandbox: failed to prepare MXC sandbox: native MXC is unavailable on this executor")
	}
	err = process.Confiner().Files(confine.Job{Policy: policy, User: s.opts.Identity}, work)
	if _, refused := errors.AsType[*confine.Refusal](err); refused || errors.Is(err, confine.ErrUnavailable) {
		return proto.Errorf(proto.CodeInternal, "failed to prepare fs sandbox: %s", err)
	}
	return err
}

// filePolicy is nil without a profile. Parts of the profile that mean nothing
// here are not looked at.
func (s *Server) filePolicy(wish *proto.Sandbox) (*confine.Policy, error) {
	if wish == nil || !wish.Restricted {
		return nil, nil
	}
	used := *wish
	if !used.Dynamic() {
		used.HasCwd, used.Roots = false, nil
	} else if !used.HasCwd {
		return nil, proto.BadParams("file system sandbox context with dynamic permissions requires cwd")
	}
	policy, err := confine.Resolve(&used, confine.Context{TmpDir: s.getenv("TMPDIR")})
	foreign, ok := errors.AsType[*confine.ForeignPath](err)
	switch {
	case !ok:
		return policy, err
	case foreign.Part == "permission path":
		return nil, proto.Invalid("invalid sandbox permission path URI: %s", foreign.Err)
	case foreign.Part == "policy cwd":
		return nil, foreign.Err
	}
	return nil, proto.Invalid("%s", foreign)
}
