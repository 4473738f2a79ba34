// Package host is the runtime without containers: the agent serves the machine
// that the server runs on, inside the server's own process, as the stock
// executor does.
package host

import (
	"context"
	"os"
	"sync"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/runtime"
)

// Runtime makes sandboxes that do not confine anything.
type Runtime struct{ opts agent.Options }

// New returns a runtime whose agents have those options; what tells about the
// user and the machine is filled in.
func New(opts agent.Options) *Runtime {
	opts.Env = os.Environ()
	opts.Cwd, _ = os.Getwd() // "" makes it null on the wire
	opts.Home, opts.Shell = agent.Self()
	if os.Getpid() == 1 { // what commands leave behind is nobody else's to reap
		go process.ReapOrphans()
	}
	return &Runtime{opts}
}

// Create implements runtime.Runtime.
func (r *Runtime) Create(_ context.Context, spec runtime.Spec) (runtime.Sandbox, error) {
	sb := &sandbox{spec: spec, done: make(chan struct{})}
	opts := r.opts
	opts.LastSession = func(string) { sb.end() }
	sb.server = agent.New(opts)
	return sb, nil
}

// Adopt implements runtime.Runtime. Nothing outlives the process.
func (r *Runtime) Adopt(context.Context) ([]runtime.Sandbox, error) { return nil, nil }

// Close implements runtime.Runtime.
func (r *Runtime) Close() error { return nil }

type sandbox struct {
	spec   runtime.Spec
	server *agent.Server
	done   chan struct{}
	once   sync.Once
}

func (s *sandbox) Spec() runtime.Spec { return s.spec }

func (s *sandbox) Serve(ctx context.Context, c proto.Conn, hello proto.Hello) error {
	return s.server.Serve(c, hello)
}

func (s *sandbox) Done() <-chan struct{} { return s.done }

func (s *sandbox) end() { s.once.Do(func() { close(s.done) }) }

func (s *sandbox) Remove(context.Context) error {
	s.server.Close()
	s.end()
	return nil
}
