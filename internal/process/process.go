package process

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// Options are what the owner of a process decides.
type Options struct {
	// OutputBytes of output are retained for reading.
	OutputBytes int
	// Notify sends notifications to whoever is attached; it may block, which
	// then blocks the command, and must not fail.
	Notify func(frames []byte)
	// Closed is called once, after the last notification.
	Closed func(*Process)
	// OOMScoreAdj, if not 0, makes the kernel rather kill the command than the
	// server when memory is short: 1 to 1000.
	OOMScoreAdj int
}

// Process is a command from its start until its record is dropped.
type Process struct {
	spec   Spec
	opts   Options
	child  *child
	stdin  stdin
	output []byte // the head of every process/output notification

	terminated atomic.Bool // terminate was asked: do not wait for the streams
	abandoned  atomic.Bool // nobody will read: do not wait for the streams
	closing    chan struct{}

	mu       sync.Mutex // guards all below; never held over a write or a wait
	ring     ring
	next     uint64 // the seq of the next event
	exited   bool
	exitCode int
	exitSeq  uint64
	closed   bool
	denied   bool
	changed  chan struct{} // closed at the next event; nil if nobody waits
}

// Start starts a command. Nothing of it is reported before Run is called.
// Errors are *proto.Error.
func Start(spec Spec, opts Options) (*Process, error) {
	c, err := children.spawn(&spec)
	if err != nil {
		return nil, err
	}
	p := &Process{spec: spec, opts: opts, child: c, next: 1, closing: make(chan struct{})}
	p.stdin.fd = c.stdin
	p.ring.limit = opts.OutputBytes
	p.output = append(p.output, `{"method":"process/output","params":{"processId":`...)
	p.output = append(proto.AppendString(p.output, spec.ID), `,"seq":`...)
	return p, nil
}

// ID is the name that the client gave to the process.
func (p *Process) ID() string { return p.spec.ID }

// PID is the process id of the command itself.
func (p *Process) PID() int { return p.child.pid }

// event takes n sequence numbers, under mu, and wakes who waits for news.
func (p *Process) event(n int) (first uint64) {
	first = p.next
	p.next += uint64(n)
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	return first
}

// Running says whether the command has not exited.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.exited
}

// Interrupt sends SIGINT to the process group, unless the command has ended.
func (p *Process) Interrupt() { p.kill(unix.SIGINT) }

// Terminate kills the process group and gives the streams up. It tells whether
// the command was running.
func (p *Process) Terminate() bool {
	p.mu.Lock()
	running := !p.exited
	p.mu.Unlock()
	if running {
		p.terminated.Store(true)
		p.kill(unix.SIGKILL)
		p.stdin.close()
	}
	return running
}

// Abandon is Terminate for a process that nobody will ask for again: streams
// that strangers keep open after its end are given up too.
// What the command left running in its group is killed as well.
func (p *Process) Abandon() {
	p.abandoned.Store(true)
	if !p.Terminate() {
		// The group's number is nobody else's as long as it has members.
		kill(-p.child.pid, unix.SIGKILL)
	}
}

func (p *Process) kill(sig unix.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.exited { // later, the number may be somebody else's
		kill(-p.child.pid, sig)
	}
}

// Write feeds standard input; data with an id that was accepted before is
// ignored. The status is one of the protocol's words.
// It waits while the command does not read, until cancel is closed.
func (p *Process) Write(id string, data []byte, cancel <-chan struct{}) (status string, err error) {
	if !p.spec.TTY && !p.spec.PipeStdin {
		return "stdinClosed", nil
	}
	if p.terminated.Load() && !p.stdin.accepted(id) {
		return "", errStdinGone
	}
	if err := p.stdin.write(id, data, p.closing, cancel); err != nil {
		return "", err
	}
	return "accepted", nil
}

// StdinFull says whether a Write would have to wait.
func (p *Process) StdinFull() bool {
	p.stdin.mu.Lock()
	defer p.stdin.mu.Unlock()
	return p.stdin.fullLocked()
}

// CloseStdin is the end of file on a pipe, behind what was written before; on a
// terminal it does nothing.
func (p *Process) CloseStdin() {
	if p.spec.PipeStdin && !p.spec.TTY {
		p.stdin.finish()
	}
}

// Resize sets the size of the process's terminal, if it has one.
func (p *Process) Resize(rows, cols uint16) {
	p.stdin.mu.Lock()
	defer p.stdin.mu.Unlock()
	if p.spec.TTY && p.stdin.fd >= 0 {
		_ = unix.IoctlSetWinsize(p.stdin.fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	}
}
