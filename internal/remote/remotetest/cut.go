package remotetest

import "github.com/coder/websocket"

// Cut is how a socket ends.
type Cut string

// The ways.
const (
	CutClose  Cut = "close"  // with a close frame
	CutEnd    Cut = "end"    // the connection is closed without one
	CutAbort  Cut = "abort"  // the connection is reset
	CutFreeze Cut = "freeze" // it stays, and nothing moves any more
)

// Cut ends the socket of an environment's executor. It returns false if there is
// none.
func (p *Peer) Cut(environmentID string, how Cut) bool {
	s := p.socketOf(environmentID)
	if s == nil || !p.begin() {
		return false
	}
	defer p.work.Done()
	switch how {
	case CutClose:
		_ = s.ws.Close(websocket.StatusGoingAway, "cut")
	case CutFreeze:
		s.gate.freeze()
	case CutAbort:
		s.gate.abort()
	default:
		_ = s.gate.Close()
	}
	return true
}

// Pings is how often the executor of an environment has pinged on its present
// socket.
func (p *Peer) Pings(environmentID string) int {
	if s := p.socketOf(environmentID); s != nil {
		return int(s.pings.Load())
	}
	return 0
}

// SendBytes sends a binary message, whatever it is, to the executor of an
// environment. SendText sends one of text.
func (p *Peer) SendBytes(environmentID string, message []byte) error {
	return p.sendAny(environmentID, websocket.MessageBinary, message)
}

// SendText is SendBytes for text.
func (p *Peer) SendText(environmentID, message string) error {
	return p.sendAny(environmentID, websocket.MessageText, []byte(message))
}

func (p *Peer) sendAny(environmentID string, kind websocket.MessageType, message []byte) error {
	s := p.socketOf(environmentID)
	if s == nil {
		return ErrLost
	}
	return s.write(kind, message)
}

func (p *Peer) socketOf(environmentID string) *socket {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.envs[environmentID]; e != nil {
		return e.socket
	}
	return nil
}
