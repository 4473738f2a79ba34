package relay

import "time"

// Failed handshakes are answered up to a number on a socket. Then none is looked at
// for a while, since each costs a few public-key operations and perhaps a call.
const (
	maxFailures = 8
	pause       = 10 * time.Second
)

// guard counts failed handshakes.
type guard struct {
	failures int
	until    time.Time // of a pause
}

// failed counts one, and tells whether a pause begins.
func (g *guard) failed() bool {
	if g.failures++; g.failures >= maxFailures {
		g.failures, g.until = 0, time.Now().Add(pause)
		return true
	}
	return false
}

// pausing tells whether handshakes are not looked at.
func (g *guard) pausing() bool { return time.Now().Before(g.until) }
