package netns

import (
	"net/netip"
	"sync/atomic"
)

// Flow is where a packet comes from, and where it would go.
type Flow struct {
	// Protocol is IP's number, as unix.IPPROTO_TCP has it.
	Protocol uint8
	// Src and Dst are unmapped. The ports are 0 unless the protocol is TCP or UDP.
	Src, Dst netip.AddrPort
}

// Packet is the first one of a TCP connection, or what a Queue is asked about, and
// waits for a verdict. The first
// verdict counts; later ones do nothing. A verdict never blocks.
type Packet struct {
	Flow
	// Start are the first bytes of it, of what a Queue is asked about.
	Start []byte

	queue *queue
	id    uint32
	given atomic.Bool
}

// Accept lets the connection be made, to one of Namespace.TCP.
func (p *Packet) Accept() { p.give(verdictAccept, p.queue.accepted) }

// Refuse has the kernel refuse it (ECONNREFUSED). It is Drop for what a Queue is
// asked about.
func (p *Packet) Refuse() { p.give(p.queue.refusal, p.queue.refused) }

// Drop leaves it unanswered: the program's kernel sends it again after a second.
func (p *Packet) Drop() { p.give(verdictDrop, 0) }

func (p *Packet) give(verdict, mark uint32) {
	if p.given.CompareAndSwap(false, true) {
		p.queue.verdict(p.id, verdict, mark)
	}
}
