package wsframe

import (
	"bytes"
	"sync"
)

// Pongs answers a peer's pings. The library would keep the reader waiting for each
// answer to be written, and would end a connection on which that takes 5 s.
type Pongs struct {
	masked bool
	write  func(frame []byte) error

	mu      sync.Mutex // guards all below; not held while writing
	next    []byte     // the payload of the last ping that was not answered
	waiting bool       // there is one
	writing bool       // somebody writes, and looks again after it
}

// NewPongs makes the answers of a client, which are masked, or a server. write may
// wait for the peer; that it failed the reader will notice.
func NewPongs(masked bool, write func(frame []byte) error) *Pongs {
	return &Pongs{masked: masked, write: write}
}

// Answer answers a ping, without waiting for it. Of several that come meanwhile the
// last is answered, as RFC 6455 has it.
func (p *Pongs) Answer(payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.waiting = bytes.Clone(payload), true
	if !p.writing {
		p.writing = true
		go p.run()
	}
}

func (p *Pongs) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.waiting {
		frame := append(AppendHeader(nil, Pong, len(p.next)), p.next...)
		if p.masked {
			frame = AppendMasked(nil, Pong, p.next)
		}
		p.waiting = false
		p.mu.Unlock()
		_ = p.write(frame)
		p.mu.Lock()
	}
	p.writing = false
}
