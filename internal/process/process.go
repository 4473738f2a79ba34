package process

import (
	"sync"
	"sync/atomic"
	"time"

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
func (p *Process) Abandon() {
	p.abandoned.Store(true)
	p.Terminate()
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
	return p.stdin.pumping && len(p.stdin.queue) >= maxQueued
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

// Reading is the answer to process/read.
type Reading struct {
	Chunks   []Chunk
	NextSeq  uint64
	Exited   bool
	ExitCode int
	Closed   bool
	Denied   bool
}

// Read returns the retained chunks after a seq, at most maxBytes but at least
// one. If there is nothing to tell, it waits for up to that long; a wait ends
// early, with whatever there is, when cancel is closed.
func (p *Process) Read(after, maxBytes uint64, bounded bool, wait time.Duration, cancel <-chan struct{}) Reading {
	var timer <-chan time.Time
	for {
		r, changed := p.look(after, maxBytes, bounded, wait > 0)
		if changed == nil {
			return r
		}
		if timer == nil {
			t := time.NewTimer(wait)
			defer t.Stop()
			timer = t.C
		}
		select {
		case <-changed:
		case <-timer:
			wait = 0
		case <-cancel:
			wait = 0
		}
	}
}

// Ready says whether Read would answer without waiting.
func (p *Process) Ready(after uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.readyLocked(after)
}

func (p *Process) readyLocked(after uint64) bool {
	n := len(p.ring.chunks)
	return n > p.ring.first && p.ring.chunks[n-1].seq > after || p.closed || p.exited && p.exitSeq > after
}

// look reads what is there. If that is nothing and the caller wants to wait, it
// returns a channel that is closed at the next event.
func (p *Process) look(after, maxBytes uint64, bounded, wait bool) (Reading, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait && !p.readyLocked(after) {
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		return Reading{}, p.changed
	}
	if !bounded {
		maxBytes = ^uint64(0)
	}
	r := Reading{NextSeq: p.next, Exited: p.exited, ExitCode: p.exitCode, Closed: p.closed, Denied: p.denied}
	r.Chunks, _ = p.ring.after(after, maxBytes)
	if n := len(r.Chunks); bounded && n > 0 {
		r.NextSeq = r.Chunks[n-1].Seq + 1
	}
	return r, nil
}

// AppendJSON implements proto.Result.
func (r Reading) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"chunks":[`...)
	for i, c := range r.Chunks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"seq":`...)
		dst = append(proto.AppendUint(dst, c.Seq), `,"stream":"`...)
		dst = append(append(dst, c.Stream.String()...), `","chunk":`...)
		dst = append(proto.AppendBase64(dst, c.Data), '}')
	}
	dst = append(dst, `],"nextSeq":`...)
	dst = append(proto.AppendUint(dst, r.NextSeq), `,"exited":`...)
	dst = append(proto.AppendBool(dst, r.Exited), `,"exitCode":`...)
	if r.Exited {
		dst = proto.AppendInt(dst, int64(r.ExitCode))
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"closed":`...)
	dst = append(proto.AppendBool(dst, r.Closed), `,"failure":null,"sandboxDenied":`...)
	return append(proto.AppendBool(dst, r.Denied), '}')
}

// SizeJSON implements proto.Sizer.
func (r Reading) SizeJSON() int {
	size := 256
	for _, c := range r.Chunks {
		size += 64 + len(c.Data)*4/3
	}
	return size
}
