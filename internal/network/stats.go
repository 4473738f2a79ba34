package network

import (
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// Bounds of what is counted by name. What is denied comes from whatever a program
// makes up, so that it may take half of the places only.
const (
	maxCounted = 256
	maxRefused = maxCounted / 2
	others     = "other"
)

// Stats is what passed and what was denied since Open.
type Stats struct {
	Total Count `json:"total"`
	// Names has the counts of each name, or address where there was no name. It is
	// bounded: the rest is under "other".
	Names map[string]Count `json:"names"`
	// Denied is by reason.
	Denied map[rules.Reason]uint64 `json:"denied"`
	// Denials are the last ones, the newest first.
	Denials []Denial `json:"denials"`
	// Lookups is how many names were looked up and allowed.
	Lookups uint64 `json:"lookups"`
	// FailedLookups is how many were allowed, and got no answer from a name server.
	FailedLookups uint64 `json:"failed_lookups"`
	// Used is how many bytes count for Policy.Bytes, Options.Used included.
	Used int64 `json:"used_bytes"`
	// Open is how many connections are open or in the making.
	Open int `json:"open"`
}

// Count counts connections and requests, what was denied with lookups among it, and
// bytes. In is towards the environment.
type Count struct {
	Allowed uint64 `json:"allowed"`
	Denied  uint64 `json:"denied"`
	In      uint64 `json:"bytes_in"`
	Out     uint64 `json:"bytes_out"`
}

type counter struct{ allowed, denied, in, out atomic.Uint64 }

func (c *counter) add(d direction, n int64) {
	if d == in {
		c.in.Add(uint64(n))
	} else {
		c.out.Add(uint64(n))
	}
}

func (c *counter) read() Count {
	return Count{Allowed: c.allowed.Load(), Denied: c.denied.Load(), In: c.in.Load(), Out: c.out.Load()}
}

// counters counts by name.
type counters struct {
	mu     sync.Mutex // guards what follows
	names  map[string]*counter
	denied map[rules.Reason]uint64
}

func newCounters() *counters {
	return &counters{names: map[string]*counter{}, denied: map[rules.Reason]uint64{}}
}

// allow counts what is allowed, and returns the counter for its bytes.
func (c *counters) allow(name string) *counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.get(name, maxCounted)
	n.allowed.Add(1)
	return n
}

// bytes returns the counter for bytes alone.
func (c *counters) bytes(name string) *counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get(name, maxCounted)
}

// deny counts what is denied, and returns the counter for the bytes of saying so.
func (c *counters) deny(name string, reason rules.Reason) *counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied[reason]++
	n := c.get(name, maxRefused)
	n.denied.Add(1)
	return n
}

// asked returns the counter for the bytes of a request that will be decided as d.
func (c *counters) asked(name string, d rules.Decision) *counter {
	if d.Verdict == rules.Allow {
		return c.bytes(name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get(name, maxRefused)
}

// get finds the counter, or makes it while there are less than most. mu is held.
func (c *counters) get(name string, most int) *counter {
	name = label(name)
	n := c.names[name]
	if n == nil && len(c.names) >= most {
		name = others
		n = c.names[name]
	}
	if n == nil {
		n = &counter{}
		c.names[name] = n
	}
	return n
}

// read fills Total, Names and Denied.
func (c *counters) read() (s Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Names = make(map[string]Count, len(c.names))
	for name, n := range c.names {
		r := n.read()
		s.Names[name] = r
		s.Total.Allowed += r.Allowed
		s.Total.Denied += r.Denied
		s.Total.In += r.In
		s.Total.Out += r.Out
	}
	s.Denied = maps.Clone(c.denied)
	return s
}

// maxLabel is the most characters that a DNS name has.
const maxLabel = 253

// label is a name as logs and counters have it: of at most maxLabel characters,
// and quoted if it is none that DNS could have.
func label(name string) string {
	if len(name) > maxLabel {
		name = name[:maxLabel]
	}
	if strings.IndexFunc(name, strange) < 0 {
		return name
	}
	return strconv.QuoteToASCII(name)
}

func strange(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:", r)
}
