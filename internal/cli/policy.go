package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// Policy implements control.Backend.
func (d *daemon) Policy(_ context.Context, name string) (control.Policy, error) {
	n, s, err := d.policyOf(name)
	if err != nil {
		return control.Policy{}, err
	}
	p := control.Policy{Name: name, Profile: s.Profile, Known: d.known(name), Policy: s.Network, Unconfined: d.cfg.Runtime == "host"}
	if n != nil {
		stats := n.Stats()
		p.Running, p.Policy, p.Stats = true, n.Policy(), &stats
	}
	return p, nil
}

// EditPolicy implements control.Backend.
func (d *daemon) EditPolicy(ctx context.Context, e control.EditPolicy) (control.Policy, error) {
	d.editing.Lock()
	defer d.editing.Unlock()
	n, s, err := d.policyOf(e.Name)
	switch {
	case err != nil:
		return control.Policy{}, err
	case d.cfg.Runtime == "host":
		return control.Policy{}, unconfinedError(e.Name)
	case n == nil:
		return control.Policy{}, d.unmade(e.Name, s.Profile)
	}
	p, err := edited(n.Policy(), s.Network, e)
	if err == nil {
		err = n.Set(p, e.Close)
	}
	if err != nil {
		return control.Policy{}, fmt.Errorf("the policy of %s stays as it is: %w", e.Name, err)
	}
	d.log.Info().Str("environment", e.Name).Str("mode", string(p.Mode)).Int("rules", len(p.Rules)).Msg("network policy changed")
	changed, err := d.Policy(ctx, e.Name)
	changed.Notes = idle(p, len(p.Rules)-len(e.Add))
	return changed, err
}

// mostIdle bounds what idle says.
const mostIdle = 5

// idle says which rules, from that index on, do not do what they say.
func idle(p rules.Policy, from int) []string {
	if from == len(p.Rules) {
		return nil
	} else if p.Mode == rules.None {
		return []string{"with mode none no rule counts: there is no way out. --mode rules lets out what they allow"}
	}
	table, err := rules.Compile(p)
	if err != nil {
		return nil
	}
	notes := table.Outranked(from)
	if n := len(notes); n > mostIdle {
		notes = append(notes[:mostIdle], fmt.Sprintf("and %d more such rules", n-mostIdle))
	}
	return notes
}

// edited is a policy after an edit.
func edited(p, profile rules.Policy, e control.EditPolicy) (rules.Policy, error) {
	switch {
	case e.Whole != nil:
		p = *e.Whole
	case e.Reset:
		p = profile
	}
	p = p.Clone()
	gone := slices.Compact(slices.Sorted(slices.Values(e.Remove)))
	for _, i := range slices.Backward(gone) {
		if i < 0 || i >= len(p.Rules) {
			return p, fmt.Errorf("there is no rule %d", i+1)
		}
		p.Rules = slices.Delete(p.Rules, i, i+1)
	}
	p.Rules = append(p.Rules, e.Add...)
	if e.Mode != "" {
		p.Mode = e.Mode
	}
	replace(&p.BytesPerSecond, e.Bandwidth)
	replace(&p.Bytes, e.Volume)
	replace(&p.Connections, e.Connections)
	replace(&p.ConnectionsPerSecond, e.ConnectionRate)
	return p, nil
}

func replace[T any](value, with *T) {
	if with != nil {
		*value = *with
	}
}

// ExplainPolicy implements control.Backend.
func (d *daemon) ExplainPolicy(ctx context.Context, q control.ExplainPolicy) (control.Explained, error) {
	n, s, err := d.policyOf(q.Name)
	switch {
	case err != nil:
		return control.Explained{}, err
	case d.cfg.Runtime == "host":
		return control.Explained{}, unconfinedError(q.Name)
	}
	question, err := rules.Ask(q.Target, q.Protocol)
	if err != nil {
		return control.Explained{}, err
	}
	answer := control.Explained{Profile: s.Profile, Running: n != nil, Known: d.known(q.Name)}
	if n != nil {
		answer.Explanation = n.Explain(ctx, question)
		return answer, nil
	}
	// For a policy that is not in force no name is looked up.
	table, err := rules.Compile(s.Network)
	if err != nil {
		return control.Explained{}, err
	}
	answer.Explanation = table.Explain(question)
	return answer, nil
}
