package socket

import (
	"bytes"
	"sync"

	"github.com/exec-server/exec-server/internal/wsframe"
)

// pongs are the answers to the peer's pings. The library would keep the reader
// waiting for each to be written, and would end a connection on which that takes 5 s.
type pongs struct {
	mu      sync.Mutex // guards all below; not held while writing
	next    []byte     // the payload of the last ping that was not answered
	waiting bool       // there is one
	writing bool       // somebody writes, and looks again after it
}

// pong answers a ping, without waiting for it. Of several that come meanwhile the
// last is answered, as RFC 6455 has it.
func (s *Socket) pong(payload []byte) {
	p := &s.pongs
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.waiting = bytes.Clone(payload), true
	if !p.writing {
		p.writing = true
		go s.writePongs()
	}
}

func (s *Socket) writePongs() {
	p := &s.pongs
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.waiting {
		frame := wsframe.AppendMasked(nil, wsframe.Pong, p.next)
		p.waiting = false
		p.mu.Unlock()
		_ = s.Write(frame) // the reader will notice
		p.mu.Lock()
	}
	p.writing = false
}
