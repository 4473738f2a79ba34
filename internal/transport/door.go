package transport

import (
	"container/list"
	"net"
	"sync"
)

const (
	// maxConnections may be open behind the upgrade. The process needs
	// descriptors for other things too.
	maxConnections = 1024
	// maxStrangers may be open before it.
	maxStrangers = 256
)

// door counts who is there. Whoever has not been upgraded yet, and so may be
// anybody, makes room for later ones when there are too many: an honest harness
// needs a moment for its handshake, and one that takes its time cannot keep
// others out.
type door struct {
	mu        sync.Mutex // guards all below, and each connection's ticket
	strangers list.List  // of *wireConn, the one that came first in front
	inside    int
}

// ticket is a connection's place at the door.
type ticket struct {
	stranger *list.Element // nil once inside, or gone
	inside   bool
}

func (d *door) arrive(c *wireConn) {
	d.mu.Lock()
	c.ticket.stranger = d.strangers.PushBack(c)
	var oldest *wireConn
	if d.strangers.Len() > maxStrangers {
		oldest = d.strangers.Front().Value.(*wireConn)
	}
	d.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
}

// admit lets a stranger in, if there is room.
func (d *door) admit(c *wireConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.ticket.stranger == nil || d.inside >= maxConnections {
		return false
	}
	d.strangers.Remove(c.ticket.stranger)
	c.ticket = ticket{inside: true}
	d.inside++
	return true
}

// leave forgets a connection. It may be called again.
func (d *door) leave(c *wireConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.ticket.stranger != nil {
		d.strangers.Remove(c.ticket.stranger)
	} else if c.ticket.inside {
		d.inside--
	}
	c.ticket = ticket{}
}

// wireListener accepts connections as they come.
type wireListener struct {
	*net.TCPListener
	door *door
}

// Accept implements net.Listener. TCP_NODELAY is on by default.
func (l wireListener) Accept() (net.Conn, error) {
	tcp, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	c := &wireConn{TCPConn: tcp, door: l.door}
	l.door.arrive(c)
	return c, nil
}
