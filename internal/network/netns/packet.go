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

// Packet is the first one of a TCP connection, which waits for a verdict. The first
// verdict counts; later ones do nothing. A verdict never blocks.
type Packet struct {
	Flow

	queue *queue
	id    uint32
	given atomic.Bool
}

// Accept lets the connection be made, to one of Namespace.TCP.
func (p *Packet) Accept() { p.give(verdictAccept, markAccepted) }

// Refuse has the kernel refuse it (ECONNREFUSED).
func (p *Packet) Refuse() { p.give(verdictAccept, markRefused) }

// Drop leaves it unanswered: the program's kernel sends it again after a second.
func (p *Packet) Drop() { p.give(verdictDrop, markRefused) }

func (p *Packet) give(verdict, mark uint32) {
	if p.given.CompareAndSwap(false, true) {
		p.queue.verdict(p.id, verdict, mark)
	}
}
