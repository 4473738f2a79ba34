package relay

import (
	"errors"
	"time"
)

// maxStall is how long a message that holds something of the budget may stop
// half-way. Without an end, others would go short for ever.
const maxStall = 60 * time.Second

var errStalled = errors.New("a large message stopped half-way")

// stall watches over the messages of a stream, whose lock guards it.
type stall struct {
	timer *time.Timer // nil until a message is watched
	last  time.Time   // when the present one went on; zero if none is watched
}

// note says that something came, and whether a message is to be watched from now
// on. check is called when it has stopped for maxStall.
func (s *stall) note(watched bool, check func()) {
	switch {
	case !watched && s.last.IsZero(): // as with most records
		return
	case !watched:
		s.timer.Stop()
		s.last = time.Time{}
		return
	case s.timer == nil:
		s.timer = time.AfterFunc(maxStall, check)
	default:
		s.timer.Reset(maxStall)
	}
	s.last = time.Now()
}

// over tells whether it has stopped: something may have come since the call.
func (s *stall) over() bool { return !s.last.IsZero() && time.Since(s.last) >= maxStall }
