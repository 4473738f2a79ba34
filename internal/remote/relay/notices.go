package relay

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// What goes wrong on streams is somebody else's to choose. A socket logs that many
// lines of it in that time, and how many there would have been.
const (
	maxNotices   = 20
	noticesEvery = time.Minute
)

// notices is the log of a socket's streams.
type notices struct {
	log zerolog.Logger

	mu     sync.Mutex // guards all below
	since  time.Time  // when the present count began
	told   int
	untold int
}

// warn begins a line, or returns nil, on which nothing has an effect.
func (n *notices) warn(stream string) *zerolog.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); now.Sub(n.since) >= noticesEvery {
		n.since, n.told = now, 0
	}
	if n.told >= maxNotices {
		n.untold++
		return nil
	}
	n.told++
	n.rest()
	return n.log.Warn().Str("stream", brief(stream))
}

// rest tells how many lines there were none of. n.mu is held.
func (n *notices) rest() {
	if n.untold > 0 {
		n.log.Warn().Int("count", n.untold).Msg("more streams were reset or refused")
		n.untold = 0
	}
}

func (n *notices) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rest()
}
