package proto

import (
	"errors"
	"math"
)

// Counts is what an agent has at a time.
type Counts struct {
	Sessions  int // attached or waiting to be resumed
	Processes int // started and not closed
}

// MaxCounts bounds a frame with Counts, in bytes.
const MaxCounts = 256

// errCounts says nothing of what an agent sent.
var errCounts = errors.New("the agent's counts are no numbers from 0 to 2147483647")

// Frame encodes the counts.
func (c Counts) Frame() Frame {
	f := append(NewFrame(64), `{"sessions":`...)
	f = append(AppendUint(f, uint64(max(0, c.Sessions))), `,"processes":`...)
	return Frame(append(AppendUint(f, uint64(max(0, c.Processes))), '}')).Seal()
}

// ParseCounts decodes counts. An agent shares its container with commands, so
// that nothing but two numbers of sensible size is believed.
func ParseCounts(text []byte) (Counts, error) {
	v, err := Parse(text)
	if err != nil {
		return Counts{}, errCounts
	}
	p := ParamsOf(v, "Counts")
	sessions, processes := p.Uint("sessions"), p.Uint("processes")
	if p.Err() != nil || sessions > math.MaxInt32 || processes > math.MaxInt32 {
		return Counts{}, errCounts
	}
	return Counts{Sessions: int(sessions), Processes: int(processes)}, nil
}
