package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/runtime"
	"github.com/exec-server/exec-server/internal/transport"
)

// policyOf returns what there is of an environment: its way out, nil if it has none
// yet, and what it is or would be made from.
func (d *daemon) policyOf(name string) (runtime.Network, runtime.Spec, error) {
	if !transport.ValidEnvironment(name) {
		return nil, runtime.Spec{}, fmt.Errorf("%q is no name of an environment", name)
	}
	profile := d.profile(name)
	if sb := d.gateway.Living(name); sb != nil {
		made := sb.Spec()
		// What it was made from may be gone from the configuration.
		if _, ok := d.cfg.Profiles[made.Profile]; !ok {
			return sb.Network(), made, nil
		}
		return sb.Network(), spec(&d.cfg, name, made.Profile), nil
	}
	return nil, spec(&d.cfg, name, profile), nil
}

// Policy implements control.Backend.
func (d *daemon) Policy(_ context.Context, name string) (control.Policy, error) {
	n, s, err := d.policyOf(name)
	if err != nil {
		return control.Policy{}, err
	}
	p := control.Policy{Name: name, Profile: s.Profile, Policy: s.Network, Unconfined: d.cfg.Runtime == "host"}
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
		return control.Policy{}, fmt.Errorf("%s has no network policy: with --runtime host commands have the network of this machine", e.Name)
	case n == nil:
		return control.Policy{}, fmt.Errorf("%s is not running: its next container begins with the policy of profile %q in the configuration", e.Name, s.Profile)
	}
	p, err := edited(n.Policy(), s.Network, e)
	if err == nil {
		err = n.Set(p, e.Close)
	}
	if err != nil {
		return control.Policy{}, fmt.Errorf("the policy of %s stays as it is: %w", e.Name, err)
	}
	d.log.Info().Str("environment", e.Name).Str("mode", string(p.Mode)).Int("rules", len(p.Rules)).Msg("network policy changed")
	return d.Policy(ctx, e.Name)
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
		return control.Explained{}, fmt.Errorf("%s has no network policy: with --runtime host commands have the network of this machine", q.Name)
	}
	question, err := rules.Ask(q.Target, q.Protocol)
	if err != nil {
		return control.Explained{}, err
	}
	if n != nil {
		return control.Explained{Running: true, Explanation: n.Explain(ctx, question)}, nil
	}
	// For a policy that is not in force no name is looked up.
	table, err := rules.Compile(s.Network)
	if err != nil {
		return control.Explained{}, err
	}
	return control.Explained{Explanation: table.Explain(question)}, nil
}
