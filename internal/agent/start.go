package agent

import (
	"regexp"
	"slices"
	"sync"

	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/snapshot"
)

var uuid = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})$`)
})

// startParams is what process/start asks for, beside the command itself.
type startParams struct {
	spec     process.Spec
	cwd      proto.URI
	policy   *process.EnvPolicy
	meta     [][2]string
	sandbox  *proto.Sandbox
	network  network
	snapshot *snapshot.Wish
}

func decodeStart(v proto.Value) (operation, error) {
	p := proto.ParamsOf(v, "ExecParams")
	s := &startParams{spec: process.Spec{
		ID:        p.String("processId"),
		Argv:      p.Strings(p.Required("argv")),
		Env:       p.Map(p.Required("env")),
		TTY:       p.Bool("tty"),
		PipeStdin: p.BoolOr("pipeStdin", false),
	}}
	s.spec.Arg0, s.spec.HasArg0 = p.OptString("arg0")
	s.cwd = p.URI("cwd")
	s.metadata(p)
	s.envPolicy(p)
	s.snapshotParam(p)
	s.sandbox = p.SandboxParam()
	s.network = decodeNetwork(p)
	return operation{do: s.start, waits: s.waits}, p.Err()
}

func (s *startParams) metadata(p *proto.Params) {
	meta := p.Sub(p.Nullable("metadata"), "ExecMetadata")
	if meta == nil {
		return
	}
	if thread, ok := meta.OptString("threadId"); ok {
		if !uuid().MatchString(thread) {
			meta.Fail(proto.BadParams("invalid thread id `%s`", thread))
		}
		s.meta = append(s.meta, [2]string{"CODEX_THREAD_ID", thread})
	}
	if call, ok := meta.OptString("toolCallId"); ok {
		s.meta = append(s.meta, [2]string{"CODEX_TOOL_CALL_ID", call})
	}
	p.Join(meta)
}

func (s *startParams) envPolicy(p *proto.Params) {
	e := p.Sub(p.Nullable("envPolicy"), "ExecEnvPolicy")
	if e == nil {
		return
	}
	s.policy = &process.EnvPolicy{
		Inherit:               e.Variant(e.Required("inherit"), "all", "none", "core"),
		IgnoreDefaultExcludes: e.Bool("ignoreDefaultExcludes"),
		Exclude:               e.Strings(e.Required("exclude")),
		Set:                   e.Map(e.Required("set")),
		IncludeOnly:           e.Strings(e.Required("includeOnly")),
	}
	size := 0
	for _, pattern := range slices.Concat(s.policy.Exclude, s.policy.IncludeOnly) {
		size += len(pattern)
	}
	if size > maxPatterns {
		e.Fail(proto.BadParams("envPolicy has more than %d bytes of patterns", maxPatterns))
	}
	p.Join(e)
}

// maxPatterns bounds the time that it takes to match them.
const maxPatterns = 16 << 10

func (s *startParams) start(c *conn) (proto.Result, error) {
	if err := s.network.check(s.spec.ID, s.sandbox != nil); err != nil {
		return nil, err
	}
	if len(s.spec.Argv) == 0 {
		return nil, proto.BadParams("argv must not be empty")
	}
	cwd, err := s.cwd.Native()
	if err != nil {
		return nil, proto.BadParams("cwd URI `%s` is not valid on this exec-server host: %s", s.cwd, err)
	}
	opts := &c.server.opts
	spec := s.spec
	spec.Cwd, spec.Shell, spec.Home = cwd, opts.Shell, opts.Home
	spec.Identity = opts.Identity
	spec.SignalCodes = c.hello.Extensions
	spec.Env = s.policy.Apply(opts.Env, s.spec.Env)
	for _, pair := range s.meta {
		spec.Env[pair[0]] = pair[1]
	}
	policy, err := commandPolicy(s.sandbox, cwd, spec.Env)
	if err != nil {
		return nil, err
	}
	plan, err := s.network.plan(spec.Env, c.server.getenv, s.sandbox != nil)
	if err != nil {
		policy.Refuse(err.Error())
	} else if plan.alone() {
		policy.Proxy(plan.allUnix)
	}
	if err := plan.mask(c, s.network.proxy, spec.Env); err != nil {
		plan.release()
		return nil, err
	}
	if plan != nil && plan.bundle != "" {
		policy.Show(plan.bundle)
	}
	if policy.Unconfined() {
		process.Confiner().Sweep()
	} else {
		spec.Confine = policy
	}
	defer s.snapshotted(c, &spec)()
	p, err := c.session.Load().start(spec, plan)
	if err != nil {
		plan.release()
		return nil, err
	}
	return started{p, s.sandbox != nil}, nil
}

// started is the answer to process/start. The process reports after it.
type started struct {
	p         *process.Process
	sandboxed bool
}

// AppendJSON implements proto.Result.
func (r started) AppendJSON(dst []byte) []byte {
	dst = proto.AppendString(append(dst, `{"processId":`...), r.p.ID())
	if r.sandboxed {
		return append(dst, `,"sandboxType":"linuxSeccomp"}`...)
	}
	return append(dst, `,"sandboxType":"none"}`...)
}

func (r started) afterAnswer() { go r.p.Run() }
