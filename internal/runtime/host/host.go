// Package host is the runtime without containers: the agent serves the machine
// that the server runs on, inside the server's own process, as the stock
// executor does.
package host

import (
	"context"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/agent"
	"github.com/exec-server/exec-server/internal/agentbin"
	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/runtime"
)

// Runtime makes sandboxes that do not confine anything.
type Runtime struct {
	opts   agent.Options
	helper *os.File // the helper's binary, in memory; nil if there is none
}

// New returns a runtime whose agents have those options; what tells about the
// user and the machine is filled in.
func New(opts agent.Options) *Runtime {
	opts.Env = os.Environ()
	opts.Cwd, _ = os.Getwd() // "" makes it null on the wire
	opts.Home, opts.Shell = agent.Self()
	if os.Getpid() == 1 { // what commands leave behind is nobody else's to reap
		go process.ReapOrphans()
	}
	r := &Runtime{opts: opts}
	if binary, err := agentbin.Helper(); err == nil {
		r.keep(binary)
	}
	return r
}

// keep puts the helper's binary where it can be executed without a path that
// somebody could replace. Without it, what it is for fails.
func (r *Runtime) keep(binary []byte) {
	fd, err := unix.MemfdCreate("exec-helper", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err != nil { // before Linux 6.3 that is what it does without the flag
		fd, err = unix.MemfdCreate("exec-helper", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return
	}
	// A number that no descriptor of the helper's own takes on the way to it.
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 128)
	_ = unix.Close(fd)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(high), "exec-helper")
	_, err = f.Write(binary)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(high), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = f.Close()
		return
	}
	r.helper, r.opts.Helper = f, fmt.Sprintf("/proc/self/fd/%d", high)
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
func (r *Runtime) Close() error {
	process.Confiner().Close()
	if r.helper != nil {
		return r.helper.Close()
	}
	return nil
}

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

func (s *sandbox) Counts(context.Context) (proto.Counts, error) { return s.server.Counts(), nil }

// Network is the machine's own, which has no policy.
func (s *sandbox) Network() runtime.Network { return nil }

func (s *sandbox) Done() <-chan struct{} { return s.done }

func (s *sandbox) end() { s.once.Do(func() { close(s.done) }) }

func (s *sandbox) Remove(context.Context) error {
	s.server.Close()
	s.end()
	return nil
}
