package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/exec-server/exec-server/internal/fleet"
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

// known tells whether there is or was an environment of that name, or whether it is
// to be.
func (d *daemon) known(name string) bool {
	if name == d.cfg.Listen.EnvironmentID || d.gateway.Living(name) != nil {
		return true
	}
	if _, ok := d.cfg.Environments[name]; ok {
		return true
	}
	if d.fleet != nil && slices.ContainsFunc(d.fleet.List(), func(i fleet.Info) bool { return i.Name == name }) {
		return true
	}
	_, err := os.Stat(filepath.Join(d.cfg.Root, "environments", name))
	return err == nil
}

// unmade says that there is no policy to change, and what to do.
func (d *daemon) unmade(name, profile string) error {
	state := name + " is not running"
	if !d.known(name) {
		state = "there is no environment " + name + " yet"
	}
	return fmt.Errorf("nothing has changed: %s, and its next container begins with [profile.%s.network] of the configuration; "+
		"change that and start the server again, or wait until a harness has connected to it", state, profile)
}

// unconfinedError says of an environment of that name that nothing confines it.
type unconfinedError string

// Error says why.
func (e unconfinedError) Error() string {
	return string(e) + " has no network policy: with --runtime host commands have the network of this machine"
}

// askPolicy is ask for the policy of an environment. Servers without containers mostly
// cannot be asked, and need not be.
func (c *Common) askPolicy(name string, do func(socket string) error) error {
	err := c.ask(do)
	none, ok := errors.AsType[noDaemonError](err)
	if !ok {
		return err
	}
	if cfg, err := c.load(); err == nil && cfg.Runtime == "host" {
		return unconfinedError(name)
	}
	return fmt.Errorf("%w; with --runtime host there is no network policy", none)
}
