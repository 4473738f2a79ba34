package network

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"
)

// sparse bounds the lines of one kind of events, of which there may be any number: to
// some at once, and then so many a second.
type sparse struct {
	limit *rate.Limiter

	mu         sync.Mutex // guards suppressed
	suppressed uint64     // events that were not logged since one was
}

func newSparse(perSecond rate.Limit, burst int) *sparse {
	return &sparse{limit: rate.NewLimiter(perSecond, burst)}
}

// newWarnings is for what lasts until somebody does something about it.
func newWarnings() *sparse { return newSparse(rate.Every(10*time.Second), 3) }

// next is a line of that level, with how many were not logged before it; or nil, which
// logs nothing, if there were many lately.
func (s *sparse) next(level func() *zerolog.Event) *zerolog.Event {
	logged := s.limit.Allow()
	s.mu.Lock()
	suppressed := s.suppressed
	s.suppressed = 0
	if !logged {
		s.suppressed = suppressed + 1
	}
	s.mu.Unlock()
	switch {
	case !logged:
		return nil
	case suppressed > 0:
		return level().Uint64("suppressed", suppressed)
	}
	return level()
}

// close logs how many were not.
func (s *sparse) close(level func() *zerolog.Event, text string) {
	s.mu.Lock()
	n := s.suppressed
	s.suppressed = 0
	s.mu.Unlock()
	if n > 0 {
		level().Uint64("suppressed", n).Msg(text)
	}
}
