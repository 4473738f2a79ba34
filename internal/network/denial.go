package network

import (
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/exec-server/exec-server/internal/network/names"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// What is logged of an environment's denials: so many at once, then one a second.
// Of the last ones Stats has maxDenials.
const (
	logBurst   = 10
	maxDenials = 32
)

// Denial is a connection, a request or a lookup that was denied.
type Denial struct {
	At time.Time `json:"at"`
	// What is the protocol and the target, as in "tcp 10.0.0.1:22", "tls
	// 1.2.3.4:443 example.org", "lookup example.org". Names in it are bounded and
	// printable.
	What   string       `json:"what"`
	Reason rules.Reason `json:"reason"`
	// Rule is the index of the rule that denies, or -1.
	Rule int `json:"rule"`
}

// denials logs what is denied, and keeps the last.
type denials struct {
	log   zerolog.Logger
	limit *rate.Limiter

	mu         sync.Mutex // guards what follows
	last       []Denial   // the oldest first
	suppressed uint64     // those that were not logged since one was
}

func newDenials(log zerolog.Logger) *denials {
	return &denials{log: log, limit: rate.NewLimiter(1, logBurst)}
}

// add notes a denial, and logs it if there were not many lately.
func (d *denials) add(x Denial) {
	x.At = time.Now()
	logged := d.limit.AllowN(x.At, 1)
	d.mu.Lock()
	if len(d.last) == maxDenials {
		d.last = slices.Delete(d.last, 0, 1)
	}
	d.last = append(d.last, x)
	suppressed := d.suppressed
	d.suppressed = 0
	if !logged {
		d.suppressed = suppressed + 1
	}
	d.mu.Unlock()
	if !logged {
		return
	}
	e := d.log.Info().Str("to", x.What).Str("reason", string(x.Reason))
	if x.Rule >= 0 {
		e = e.Int("rule", x.Rule+1)
	}
	if suppressed > 0 {
		e = e.Uint64("suppressed", suppressed)
	}
	e.Msg("network: denied")
}

// recent returns the last ones, the newest first.
func (d *denials) recent() []Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := slices.Clone(d.last)
	slices.Reverse(last)
	return last
}

// close logs how many were not.
func (d *denials) close() {
	d.mu.Lock()
	n := d.suppressed
	d.suppressed = 0
	d.mu.Unlock()
	if n > 0 {
		d.log.Info().Uint64("suppressed", n).Msg("network: denied")
	}
}

// denied notes what was denied about a connection, of which s was said. It returns
// the counter for the bytes of the answer, where there is one.
func (w *Way) denied(c *connection, s rules.Said, d rules.Decision) *counter {
	name, what := c.label(s), string(rules.TCP)
	switch {
	case s.App != "":
		what = string(s.App)
	case c.flow.Protocol != "":
		what = string(c.flow.Protocol)
	}
	what += " " + c.to.String()
	if name != c.to.Addr().String() {
		what += " " + label(name)
	}
	w.denials.add(Denial{What: what, Reason: d.Reason, Rule: d.Rule})
	return w.counters.deny(name, d.Reason)
}

// lookup notes what became of a query.
func (w *Way) lookup(e names.Event) {
	switch e.Kind {
	case names.Allowed:
		w.lookups.Add(1)
	case names.Denied, names.Removed:
		what := "lookup " + label(e.Name)
		if e.Kind == names.Removed {
			what += " " + e.Addr.String()
		}
		w.counters.deny(e.Name, e.Reason)
		w.denials.add(Denial{What: what, Reason: e.Reason, Rule: e.Rule})
	case names.Failed:
		w.opts.Log.Debug().Err(e.Err).Str("name", label(e.Name)).Msg("network: lookup")
	}
}
