package agent

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
)

// Options say how a server behaves. The zero value of a field stands for the
// reference's own behaviour.
type Options struct {
	// Identity runs commands and does file work; nil is the server's own user.
	Identity *process.Identity
	// Env is the environment that commands inherit, as NAME=VALUE.
	Env []string
	// Cwd is the working directory that environment/info tells; Home and Shell
	// are the user's.
	Cwd, Home, Shell string
	// Detach is how long a session lives without a connection (80 s).
	Detach time.Duration
	// KeepClosed is how long a closed process stays readable (80 s).
	KeepClosed time.Duration
	// OutputBytes are retained for each process (1 MiB).
	OutputBytes int
	// OOMScoreAdj is that of commands; 0 leaves it alone.
	OOMScoreAdj int
	// MaxProcesses may run at once, and MaxConnections be there; 0 is no limit.
	// Each takes a thread, and a program that gets no thread ends.
	MaxProcesses, MaxConnections int
	// Helper is the program for what the agent does not do itself: a path, also
	// of the form /proc/self/fd/N. Without it http/request,
	// environmentConfig/read and capabilities/discoverV2 fail.
	Helper string
	// Dir is a directory that commands can read and not write, for files that they
	// are to have; "" is the system's for temporary files.
	Dir string
	// LastSession is called when a session that was opened under an id of the
	// gateway's choosing is gone, or was never opened.
	LastSession func(id string)
}

// Server serves the protocol on any number of connections.
type Server struct {
	opts Options

	running     atomic.Int64 // processes that were started and not closed
	connections atomic.Int64 // of the socket

	retained retainer

	// startProxy starts the process of a command's proxy, with the sockets that
	// it serves. They stay the caller's.
	startProxy func(files []int) (proxyLink, error)

	mu       sync.Mutex // guards sessions and each session's conn and timer
	sessions map[string]*session
}

// New returns a server without sessions.
func New(opts Options) *Server {
	if opts.Detach <= 0 {
		opts.Detach = 80 * time.Second
	}
	if opts.KeepClosed <= 0 {
		opts.KeepClosed = 80 * time.Second
	}
	if opts.OutputBytes <= 0 {
		opts.OutputBytes = 1 << 20
	}
	s := &Server{opts: opts, sessions: make(map[string]*session)}
	s.startProxy = s.startProxyHelper
	return s
}

// Serve serves one connection until either side ends it, and closes it. The
// error says why it could not be served at all.
func (s *Server) Serve(pc proto.Conn, hello proto.Hello) error {
	defer func() { _ = pc.Close() }()
	done := make(chan error, 1)
	s.opts.Identity.Go(func() {
		newConn(s, pc, hello).serve()
		done <- nil
	}, func(err error) { done <- err })
	return <-done
}

// Counts tells how many sessions and processes there are.
func (s *Server) Counts() proto.Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return proto.Counts{Sessions: len(s.sessions), Processes: int(s.running.Load())}
}

// Close ends all sessions and kills their processes.
func (s *Server) Close() {
	s.mu.Lock()
	all := make([]*session, 0, len(s.sessions))
	for id, sess := range s.sessions {
		all = append(all, sess)
		delete(s.sessions, id)
	}
	s.mu.Unlock()
	for _, sess := range all {
		sess.end()
	}
	process.Confiner().Sweep()
}
