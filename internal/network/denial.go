package network

import (
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

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
	log            zerolog.Logger
	usual, failure *sparse

	mu   sync.Mutex // guards last
	last []Denial   // the oldest first
}

func newDenials(log zerolog.Logger) *denials {
	return &denials{log: log, usual: newSparse(1, logBurst), failure: newSparse(1, logBurst)}
}

// add notes a denial, and logs it if there were not many lately. An error is why what
// is allowed could not be done: that is the operator's to mend, and has lines of its
// own.
func (d *denials) add(x Denial, err error) {
	x.At = time.Now()
	d.mu.Lock()
	if len(d.last) == maxDenials {
		d.last = slices.Delete(d.last, 0, 1)
	}
	d.last = append(d.last, x)
	d.mu.Unlock()
	var e *zerolog.Event
	if err == nil {
		e = d.usual.next(d.log.Info)
	} else {
		e = d.failure.next(d.log.Warn).Err(err)
	}
	e = e.Str("to", x.What).Str("reason", string(x.Reason))
	if x.Rule >= 0 {
		e = e.Int("rule", x.Rule+1)
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
	d.usual.close(d.log.Info, "network: denied")
	d.failure.close(d.log.Warn, "network: denied")
}

// denied notes what was denied about a connection, of which s was said. It returns
// the counter for the bytes of the answer, where there is one.
func (w *Way) denied(c *connection, s rules.Said, d rules.Decision) *counter {
	return w.failed(c, s, d, nil)
}

// failed is denied where an error is the reason.
func (w *Way) failed(c *connection, s rules.Said, d rules.Decision, err error) *counter {
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
	w.denials.add(Denial{What: what, Reason: d.Reason, Rule: d.Rule}, err)
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
		w.denials.add(Denial{What: what, Reason: e.Reason, Rule: e.Rule}, nil)
	case names.Failed:
		if w.ctx.Err() != nil {
			return // it was broken off
		}
		w.failures.Add(1)
		w.unresolved.next(w.opts.Log.Warn).Err(e.Err).Str("name", label(e.Name)).Msg("network: a lookup failed")
	}
}
