package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/units"
)

type envPolicyCmd struct {
	Name envPolicyNameCmd `arg:"" help:"Name of the environment."`
}

type envPolicyNameCmd struct {
	Name string `arg:"" help:"Name of the environment."`

	Show    policyShowCmd    `cmd:"" default:"withargs" help:"Show its mode, rules, limits and counters (the default)."`
	Set     policySetCmd     `cmd:"" help:"Change it, for as long as the environment's container lives."`
	Explain policyExplainCmd `cmd:"" help:"Say what becomes of a connection, and which rule decides."`
}

type policyShowCmd struct {
	JSON bool `name:"json" help:"Print all there is to tell, as JSON."`
}

// Run shows the policy.
func (s *policyShowCmd) Run(ctx context.Context, common *Common, std Streams, c *commands) error {
	ctx, cancel := context.WithTimeout(ctx, policyTime)
	defer cancel()
	var p control.Policy
	name := c.Env.Policy.Name.Name
	err := common.askPolicy(name, func(socket string) (err error) {
		p, err = control.GetPolicy(ctx, socket, name)
		return err
	})
	if _, ok := errors.AsType[unconfinedError](err); ok {
		p = control.Policy{Name: name, Unconfined: true}
	} else if err != nil {
		return err
	}
	if s.JSON {
		return printJSON(std.Out, p)
	}
	return showPolicy(std.Out, p, time.Now())
}

type policySetCmd struct {
	Mode   string   `enum:",none,rules,open" default:"" placeholder:"none|rules|open" help:"What becomes of what no rule is about."`
	Allow  []string `sep:"none" placeholder:"WORDS" help:"Add a rule. Words are HOST[:PORTS][/PROTOCOLS]: 'pypi.org *.pypi.org', '10.1.0.0/16:22,8000-8100', 'db.example:5432/tcp', '*'. May be repeated."`
	Deny   []string `sep:"none" placeholder:"WORDS" help:"Add a rule that denies, in the same words. May be repeated."`
	Remove []int    `placeholder:"N" help:"Remove the rule with that number, as it is shown. May be repeated."`

	Bandwidth      *units.Size `placeholder:"SIZE" help:"Most bytes a second in each direction, as in 10MiB; 0 is no limit."`
	Volume         *units.Size `placeholder:"SIZE" help:"Most bytes in both directions together, with what has passed; 0 is no limit."`
	Connections    *int        `placeholder:"N" help:"Most connections at a time, up to 4096; 0 is 1024."`
	ConnectionRate *int        `placeholder:"N" help:"Most new connections a second; 0 is no limit."`

	From  string `xor:"from" placeholder:"FILE" help:"Begin from a whole policy in a file of JSON, as 'policy NAME --json' prints it; - is standard input."`
	Reset bool   `xor:"from" help:"Begin from what the profile says."`
	Close bool   `help:"End open connections that are denied then."`
	JSON  bool   `name:"json" help:"Print what it is then as JSON."`
}

// Run changes the policy, and shows what it is then.
func (s *policySetCmd) Run(ctx context.Context, common *Common, std Streams, c *commands) error {
	edit, err := s.edit(c.Env.Policy.Name.Name, std.In)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, policyTime)
	defer cancel()
	var p control.Policy
	err = common.askPolicy(edit.Name, func(socket string) (err error) {
		p, err = control.SetPolicy(ctx, socket, edit)
		return err
	})
	if err != nil {
		return err
	}
	notes(std, p.Notes)
	if s.JSON {
		return printJSON(std.Out, p)
	}
	return showPolicy(std.Out, p, time.Now())
}

func (s *policySetCmd) edit(name string, in io.Reader) (control.EditPolicy, error) {
	e := control.EditPolicy{Name: name, Reset: s.Reset, Mode: rules.Mode(s.Mode), Close: s.Close,
		Bandwidth: (*int64)(s.Bandwidth), Volume: (*int64)(s.Volume), Connections: s.Connections, ConnectionRate: s.ConnectionRate}
	for _, n := range s.Remove {
		e.Remove = append(e.Remove, n-1)
	}
	for _, list := range []struct {
		flag   string
		words  []string
		denies bool
	}{{"--allow", s.Allow, false}, {"--deny", s.Deny, true}} {
		for _, words := range list.words {
			all, err := parseRules(words, list.denies)
			if err != nil {
				return e, usageError(list.flag + ": " + err.Error())
			}
			e.Add = append(e.Add, all...)
		}
	}
	if s.From != "" {
		whole, err := readPolicy(s.From, in)
		if err != nil {
			return e, err
		}
		e.Whole = &whole
	}
	if reflect.DeepEqual(e, control.EditPolicy{Name: name}) {
		return e, usageError("set: nothing to change is given")
	}
	return e, nil
}

type policyExplainCmd struct {
	Target   string `arg:"" placeholder:"HOST:PORT" help:"HOST:PORT that would be connected to; HOST for icmp."`
	Protocol string `enum:",tcp,tls,http,udp,icmp" default:"" placeholder:"tls|http|tcp|udp|icmp" help:"How it would be spoken to (what fits the port)."`
	JSON     bool   `name:"json" help:"Print it as JSON."`
}

// Run explains the policy.
func (e *policyExplainCmd) Run(ctx context.Context, common *Common, std Streams, c *commands) error {
	ctx, cancel := context.WithTimeout(ctx, policyTime)
	defer cancel()
	name := c.Env.Policy.Name.Name
	if _, err := rules.Ask(e.Target, rules.Protocol(e.Protocol)); err != nil {
		return usageError("explain " + err.Error())
	}
	var answer control.Explained
	err := common.askPolicy(name, func(socket string) (err error) {
		answer, err = control.Explain(ctx, socket, control.ExplainPolicy{Name: name, Target: e.Target, Protocol: rules.Protocol(e.Protocol)})
		return err
	})
	if err != nil {
		return err
	}
	if e.JSON {
		return printJSON(std.Out, answer)
	}
	switch {
	case !answer.Known:
		fmt.Fprintf(std.Err, "exec-server: there is no environment %s yet: this is about the policy of profile %s\n", name, answer.Profile)
	case !answer.Running:
		fmt.Fprintf(std.Err, "exec-server: %s is not running: this is about the policy of profile %s\n", name, answer.Profile)
	}
	for _, line := range answer.Lines {
		if _, err := fmt.Fprintln(std.Out, printable(line)); err != nil {
			return err
		}
	}
	return nil
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
