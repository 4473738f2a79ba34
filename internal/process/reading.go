package process

import (
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

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

// Retained is how many bytes of output are kept.
func (p *Process) Retained() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ring.size
}

// DropOutput lets go of all output that is kept. A reader finds it missing, as if
// newer output had displaced it.
func (p *Process) DropOutput() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ring = ring{limit: p.ring.limit}
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
	r.Chunks = p.ring.after(after, maxBytes)
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
