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

// parseRule reads a rule that allows: names and prefixes, and what has a key.
func parseRule(words string) (r rules.Rule, err error) {
	var c rules.Credential
	for word := range strings.FieldsSeq(words) {
		key, value, keyed := strings.Cut(word, "=")
		switch {
		case !keyed:
			r.Allow = append(r.Allow, word)
		case key == "ports":
			for one := range strings.SplitSeq(value, ",") {
				p, err := rules.ParsePorts(one)
				if err != nil {
					return r, err
				}
				r.Ports = append(r.Ports, p)
			}
		case key == "protocols":
			for one := range strings.SplitSeq(value, ",") {
				r.Protocols = append(r.Protocols, rules.Protocol(one))
			}
		case key == "header":
			c.Header = value
		case key == "basic_user":
			c.BasicUser = value
		case key == "secret_file":
			c.SecretFile = value
		case key == "secret_env":
			c.SecretEnv = value
		case key == "placeholder":
			c.Placeholder = value
		default:
			return r, fmt.Errorf("%s is none of ports, protocols, header, basic_user, secret_file, secret_env, placeholder", strconv.Quote(key))
		}
	}
	if len(r.Allow) == 0 {
		return r, fmt.Errorf("%q names nothing", words)
	}
	if c.Header+c.BasicUser+c.SecretFile+c.SecretEnv+c.Placeholder != "" {
		r.Credential = &c
	}
	return r, nil
}

// ruleText is a rule in the words that parseRule reads.
func ruleText(r rules.Rule) string {
	verb, list := "allow", r.Allow
	if len(r.Deny) > 0 {
		verb, list = "deny", r.Deny
	}
	words := append([]string{verb}, list...)
	if len(r.Ports) > 0 {
		words = append(words, "ports="+join(r.Ports))
	}
	if len(r.Protocols) > 0 {
		words = append(words, "protocols="+join(r.Protocols))
	}
	if c := r.Credential; c != nil {
		for _, pair := range [][2]string{
			{"header", c.Header}, {"format", c.Format}, {"basic_user", c.BasicUser}, {"secret_file", c.SecretFile}, {"secret_env", c.SecretEnv},
			{"secret_command", strings.Join(c.SecretCommand, " ")}, {"placeholder", c.Placeholder},
		} {
			if pair[1] != "" {
				words = append(words, pair[0]+"="+pair[1])
			}
		}
	}
	return strings.Join(words, " ")
}

func join[T any](list []T) string {
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = fmt.Sprint(one)
	}
	return strings.Join(texts, ",")
}

// showPolicy prints a policy and, of a sandbox, the counters.
func showPolicy(w io.Writer, p control.Policy, now time.Time) error {
	if p.Unconfined {
		_, err := fmt.Fprintf(w, "%s has no network policy: with --runtime host commands have the network of this machine\n", p.Name)
		return err
	}
	state := "running"
	if !p.Running {
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
	for _, limit := range limitTexts(p.Policy.Limits) {
		out.print("limit        %s", limit)
	}
	for i, r := range p.Policy.Rules {
		out.print("rule %-6s  %s", strconv.Itoa(i+1), ruleText(r))
	}
	if p.Stats != nil {
		out.stats(*p.Stats, now)
	}
	return out.err
}

func limitTexts(l rules.Limits) (texts []string) {
	add := func(n int64, text string) {
		if n > 0 {
			texts = append(texts, text)
		}
	}
	add(l.BytesPerSecond, units.Size(l.BytesPerSecond).String()+" a second in each direction")
	add(l.Bytes, units.Size(l.Bytes).String()+" in all")
	add(int64(l.Connections), fmt.Sprintf("%d connections at a time", l.Connections))
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
		_, l.err = fmt.Fprintln(l.w, oneLine(fmt.Sprintf(format, args...)))
	}
}

// What of the counters is shown at most: names, and denials.
const (
	mostNames   = 20
	mostDenials = 10
)

func (l *lines) stats(s network.Stats, now time.Time) {
	l.print("traffic      %d allowed, %d denied, %d open, %d lookups, %d bytes in, %d bytes out", s.Total.Allowed, s.Total.Denied, s.Open, s.Lookups, s.Total.In, s.Total.Out)
	for _, reason := range slices.Sorted(maps.Keys(s.Denied)) {
		l.print("denied       %d by %s", s.Denied[reason], reason)
	}
	for _, d := range s.Denials[:min(len(s.Denials), mostDenials)] {
		why := string(d.Reason)
		if d.Rule >= 0 {
			why += " " + strconv.Itoa(d.Rule+1)
		}
		l.print("last denied  %s: %s (%s ago)", d.What, why, age(now.Sub(d.At)))
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
