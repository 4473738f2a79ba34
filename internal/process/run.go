package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

const (
	// chunkSize is the largest payload of one process/output notification.
	chunkSize = 8192
	// readSize is the most that is read at once: what a pipe holds.
	readSize = 64 << 10
	// graceMs is how often an ended command's open streams are reconsidered.
	graceMs = 500
)

var readBuffers = sync.Pool{New: func() any { b := make([]byte, readSize); return &b }}

// Run reports the command's output and end, and returns when that is done. It
// blocks its thread.
func (p *Process) Run() {
	if adj := p.opts.OOMScoreAdj; adj != 0 && p.child.pid != 0 {
		// Here and not before the answer, since nobody waits for it here. If the
		// command has ended already, so has its memory.
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.child.pid), strconv.AppendInt(nil, int64(adj), 10), 0)
	}
	buf := readBuffers.Get().(*[]byte)
	defer readBuffers.Put(buf)
	w := watch{p: p, buf: *buf}
	for !p.exited || w.open() {
		if !w.open() {
			p.exit(&w) // nothing else can happen: wait for it alone
			continue
		}
		w.step()
	}
	if w.tail == nil {
		w.tail = p.closedFrame(w.tail)
	}
	p.opts.Notify(w.tail)
	p.child.confinement.End()
	p.stdin.close()
	close(p.closing)
	p.opts.Closed(p)
}

// watch is the owner's view of a running command's descriptors.
type watch struct {
	p    *Process
	buf  []byte
	tail []byte // the last notifications, held back to go out together
}

func (w *watch) open() bool { return w.p.child.out[0] >= 0 || w.p.child.out[1] >= 0 }

// poll waits for the streams and, until the command has exited, for that.
func (w *watch) poll(timeout int) (ready [3]int16, n int) {
	c := w.p.child
	fds := [3]unix.PollFd{
		{Fd: int32(c.out[0]), Events: unix.POLLIN},
		{Fd: int32(c.out[1]), Events: unix.POLLIN},
		{Fd: int32(c.pidfd), Events: unix.POLLIN},
	}
	n, err := unix.Poll(fds[:], timeout)
	if err != nil { // EINTR; nothing else can be
		return ready, 0
	}
	return [3]int16{fds[0].Revents, fds[1].Revents, fds[2].Revents}, n
}

func (w *watch) step() {
	p := w.p
	timeout := -1
	if p.exited {
		timeout = graceMs
	}
	ready, n := w.poll(timeout)
	if p.exited && (p.abandoned.Load() || p.terminated.Load()) {
		w.giveUp()
		return
	}
	if n == 0 {
		return
	}
	w.read(ready)
	if ready[2] == 0 {
		return
	}
	// It has ended. What it printed is in the pipes: take it before the end is
	// numbered. A survivor may go on printing, hence the bound.
	for range 2 * readSize / chunkSize {
		if ready, n := w.poll(0); n == 0 || ready[0]|ready[1] == 0 {
			break
		} else {
			w.read(ready)
		}
	}
	if p.terminated.Load() || p.abandoned.Load() {
		w.giveUp()
	}
	p.exit(w)
}

func (w *watch) giveUp() {
	for i := range w.p.child.out {
		w.shut(i)
	}
}

func (w *watch) shut(i int) {
	if fd := w.p.child.out[i]; fd >= 0 {
		_ = unix.Close(fd)
		w.p.child.out[i] = -1
	}
}

// read takes what is ready from each stream, once.
func (w *watch) read(ready [3]int16) {
	for i, fd := range w.p.child.out {
		if fd < 0 || ready[i] == 0 {
			continue
		}
		n := 0
		if ready[i]&unix.POLLIN != 0 {
			var err error
			n, err = unix.Read(fd, w.buf)
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
				continue
			}
		}
		if n > 0 {
			w.p.print(w.p.child.streams[i], w.buf[:n])
		}
		// A terminal reports its end as an error, a pipe as nothing to read. If
		// all writers had gone before, a short read was the last.
		if n <= 0 || n < len(w.buf) && ready[i]&unix.POLLHUP != 0 && w.p.child.streams[i] != PTY {
			w.shut(i)
		}
	}
}

// print numbers, keeps and sends output.
func (p *Process) print(stream Stream, data []byte) {
	pieces := (len(data) + chunkSize - 1) / chunkSize
	p.mu.Lock()
	seq := p.event(pieces)
	for i := range pieces {
		p.ring.push(seq+uint64(i), stream, data[i*chunkSize:min(len(data), (i+1)*chunkSize)])
	}
	p.mu.Unlock()
	batch := make([]byte, 0, pieces*(len(p.output)+80)+len(data)*4/3)
	for i := range pieces {
		var start int
		batch, start = proto.OpenFrame(batch)
		batch = append(batch, p.output...)
		batch = append(proto.AppendUint(batch, seq+uint64(i)), `,"stream":"`...)
		batch = append(append(batch, stream.String()...), `","chunk":`...)
		batch = proto.AppendBase64(batch, data[i*chunkSize:min(len(data), (i+1)*chunkSize)])
		batch = proto.CloseFrame(append(batch, "}}"...), start)
	}
	p.opts.Notify(batch)
}

// exit waits for the end of the command, which is there or near, and reports it.
func (p *Process) exit(w *watch) {
	code := p.child.reap(p.spec.TTY && !p.spec.SignalCodes)
	p.mu.Lock()
	p.exited, p.exitCode = true, code
	p.denied = p.spec.Confine != nil && p.ring.deniedBySandbox(code)
	p.exitSeq = p.event(1)
	seq, denied := p.exitSeq, p.denied
	p.mu.Unlock()
	f := append(proto.NewFrame(256), `{"method":"process/exited","params":{"processId":`...)
	f = append(proto.AppendString(f, p.spec.ID), `,"seq":`...)
	f = append(proto.AppendUint(f, seq), `,"exitCode":`...)
	f = append(proto.AppendInt(f, int64(code)), `,"sandboxDenied":`...)
	f = append(proto.AppendBool(f, denied), `}}`...)
	f = proto.Frame(f).Seal()
	if w.open() || p.child.confinement.Visible() {
		p.opts.Notify(f)
		f = nil
		// What a confined command left running ends with it, and so do the streams.
		p.child.confinement.End()
	}
	if !w.open() {
		w.tail = p.closedFrame(f)
	}
}

// reap waits for the command's end and returns its exit code, which is 1 for a
// death by any signal if signals do not count.
func (c *child) reap(signalsAreOne bool) int {
	if c.pid == 0 {
		return c.stillborn
	}
	status, ok := wait(c.pid)
	_ = unix.Close(c.pidfd)
	c.pidfd = -1
	switch {
	case ok && status.Exited():
		return status.ExitStatus()
	case ok && status.Signaled() && !signalsAreOne:
		return 128 + int(status.Signal())
	}
	return 1
}

// closedFrame numbers the last event and appends its notification to batch.
func (p *Process) closedFrame(batch []byte) []byte {
	p.mu.Lock()
	seq := p.event(1)
	p.closed = true
	p.mu.Unlock()
	f := append(proto.NewFrame(128), `{"method":"process/closed","params":{"processId":`...)
	f = append(proto.AppendString(f, p.spec.ID), `,"seq":`...)
	f = append(proto.AppendUint(f, seq), `}}`...)
	return append(batch, proto.Frame(f).Seal()...)
}
