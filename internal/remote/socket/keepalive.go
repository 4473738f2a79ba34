package socket

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/exec-server/exec-server/internal/wsframe"
)

// The reference pings that often, and waits that long for the answer to a ping.
const (
	PingEvery   = 30 * time.Second
	PongTimeout = 60 * time.Second
)

// ErrSilent says that a ping was not answered.
var ErrSilent = errors.New("no answer to pings within 60 s")

// Keepalive pings until ctx ends, or the connection does. It ends a connection on
// which a ping is not answered, and returns ErrSilent then.
func (s *Socket) Keepalive(ctx context.Context) error {
	t := time.NewTicker(PingEvery)
	defer t.Stop()
	frame := wsframe.AppendMasked(nil, wsframe.Ping, nil)
	var sending atomic.Bool
	for {
		select {
		case <-t.C:
			// Counted, since the ticks come a little early or late: by the clock, the one
			// that is due now might have to wait for the next.
			if s.unanswered.Load() >= int32(PongTimeout/PingEvery) {
				_ = s.Close()
				return ErrSilent
			}
			s.unanswered.Add(1)
			// The write may wait for the peer, and the next look must not.
			if sending.CompareAndSwap(false, true) {
				go func() {
					_ = s.Write(frame)
					sending.Store(false)
				}()
			}
		case <-ctx.Done():
			return nil
		case <-s.ctx.Done():
			return nil
		}
	}
}
