package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/network"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/units"
)

// policyTime is how long a server may take to change or explain a policy. A name
// may be looked up for it.
const policyTime = 20 * time.Second

// parseRules reads words of the form HOST[:PORTS][/PROTOCOLS]. Those that have ports
// and protocols in common make one rule.
func parseRules(words string, denies bool) (all []rules.Rule, err error) {
	for word := range strings.FieldsSeq(words) {
		r, err := rules.Parse(word, denies)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", word, err)
		}
		if i := len(all) - 1; i >= 0 && slices.Equal(all[i].Ports, r.Ports) && slices.Equal(all[i].Protocols, r.Protocols) {
			all[i].Allow, all[i].Deny = append(all[i].Allow, r.Allow...), append(all[i].Deny, r.Deny...)
			continue
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%q names nothing", words)
	}
	return all, nil
}

// showPolicy prints a policy and, of a sandbox, the counters.
func showPolicy(w io.Writer, p control.Policy, now time.Time) error {
	if p.Unconfined {
		_, err := fmt.Fprintln(w, unconfinedError(p.Name))
		return err
	}
	state := "running"
	switch {
	case !p.Known:
		state = "there is no environment of that name yet: this is what it would begin with"
	case !p.Running:
		state = "not running: this is what its next container begins with"
	}
	out := &lines{w: w}
	out.print("environment  %s (%s)", p.Name, state)
	out.print("profile      %s", p.Profile)
	out.print("mode         %s", p.Policy.Mode)
	for _, on := range []struct {
		name string
		on   bool
	}{{"veth", p.Policy.VEth}, {"intercept", p.Policy.Intercept}} {
		if on.on {
			out.print("%-11s  yes", on.name)
		}
	}
	for _, limit := range limitTexts(p.Policy.Limits, p.Stats) {
		out.print("limit        %s", limit)
	}
	for i, r := range p.Policy.Rules {
		out.print("rule %-6s  %s", strconv.Itoa(i+1), r)
	}
	if p.Stats != nil {
		out.stats(*p.Stats, now)
	}
	return out.err
}

// limitTexts has the limits, and of a sandbox how much of the volume is used.
func limitTexts(l rules.Limits, s *network.Stats) (texts []string) {
	add := func(n int64, text string) {
		if n > 0 {
			texts = append(texts, text)
		}
	}
	add(l.BytesPerSecond, units.Size(l.BytesPerSecond).String()+" a second in each direction")
	volume := units.Size(l.Bytes).String() + " in all"
	switch {
	case s != nil && s.Used >= l.Bytes:
		volume += ", which are used up: nothing passes"
	case s != nil:
		volume += fmt.Sprintf(", %d bytes (%d%%) of it used", s.Used, int(float64(s.Used)/float64(l.Bytes)*100))
	}
	add(l.Bytes, volume)
	connections := cmp.Or(l.Connections, rules.UsualConnections)
	add(int64(connections), fmt.Sprintf("%d connections at a time", connections))
	add(int64(l.ConnectionsPerSecond), fmt.Sprintf("%d new connections a second", l.ConnectionsPerSecond))
	return texts
}

// lines prints until that fails.
type lines struct {
	w   io.Writer
	err error
}

func (l *lines) print(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintln(l.w, printable(fmt.Sprintf(format, args...)))
	}
}

// What of the counters is shown at most: names, and denials.
const (
	mostNames   = 20
	mostDenials = 10
)

func (l *lines) stats(s network.Stats, now time.Time) {
	l.print("traffic      %d allowed, %d denied, %d open, %d lookups, %d bytes in, %d bytes out", s.Total.Allowed, s.Total.Denied, s.Open, s.Lookups, s.Total.In, s.Total.Out)
	if s.FailedLookups > 0 {
		l.print("lookups      %d failed: no name server has answered", s.FailedLookups)
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Denied)) {
		l.print("denied       %d by %s", s.Denied[reason], reason)
	}
	for _, d := range s.Denials[:min(len(s.Denials), mostDenials)] {
		why := string(d.Reason) + " ("
		if d.Rule >= 0 && d.Reason == rules.ByRule {
			why = fmt.Sprintf("rule %d (", d.Rule+1)
		} else if d.Rule >= 0 {
			why += fmt.Sprintf("rule %d, ", d.Rule+1)
		}
		l.print("last denied  %s: %s%s ago)", d.What, why, age(now.Sub(d.At)))
	}
	if len(s.Names) == 0 || l.err != nil {
		return
	}
	names := slices.SortedFunc(maps.Keys(s.Names), func(a, b string) int {
		x, y := s.Names[a], s.Names[b]
		return cmp.Or(cmp.Compare(y.Allowed+y.Denied, x.Allowed+x.Denied), cmp.Compare(a, b))
	})
	t := tabwriter.NewWriter(l.w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nNAME\tALLOWED\tDENIED\tBYTES IN\tBYTES OUT")
	for _, name := range names[:min(len(names), mostNames)] {
		c := s.Names[name]
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\n", oneLine(name), c.Allowed, c.Denied, c.In, c.Out)
	}
	if l.err = t.Flush(); len(names) > mostNames {
		l.print("and %d more, which --json has", len(names)-mostNames)
	}
}
