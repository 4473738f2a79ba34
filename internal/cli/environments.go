package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/fleet"
	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/remote/credential"
)

// stateFile has the environments that were added to a running daemon. What is to
// be confined must not be served by a daemon that does not confine.
func stateFile(cfg *config.Config) string {
	if cfg.Runtime == "host" {
		return filepath.Join(cfg.Root, "environments.host.json")
	}
	return filepath.Join(cfg.Root, "environments.json")
}

// openFleet makes the fleet, and the control socket. A daemon without containers
// has the latter only if it has environments to tell about: there may be many of
// them on a machine, started by anybody.
func (d *daemon) openFleet(k kind) (err error) {
	opts := fleet.Options{Gateway: d.gateway, Complete: d.cfg.Complete, State: stateFile(&d.cfg), Log: d.log}
	if k != passing {
		if d.kept, err = fleet.Kept(opts.State); d.cfg.Runtime == "host" && errors.Is(err, fs.ErrPermission) {
			err = nil
		}
		if err != nil {
			return err
		}
	}
	if d.cfg.Runtime != "host" {
		d.control, err = control.Listen(controlSocket(d.cfg.Root))
	} else if k == remote || k == server && (len(d.kept)+len(d.cfg.Environments) > 0 || d.cfg.Listen.URL == config.NoListener) {
		if d.control = d.hostControl(); d.control == nil {
			opts.State, d.kept = "", nil // they are another daemon's
		}
	}
	if k != passing {
		d.fleet = fleet.New(opts)
	}
	return err
}

// hostControl opens the control socket of a daemon without containers. That there
// is none keeps it from nothing else.
func (d *daemon) hostControl() *control.Server {
	path := hostSocket(d.cfg.Root)
	var c *control.Server
	err := makeStateDir(filepath.Dir(path))
	if err == nil && control.Alive(path) {
		err = fmt.Errorf("another exec-server has %s", path)
	}
	if err == nil {
		c, err = control.Listen(path)
	}
	if err != nil {
		d.log.Warn().Err(err).Msg("there is no control socket: exec-server env does not reach this server")
		return nil
	}
	return c
}

// startFleet begins to serve the environments of the configuration, and those that
// an earlier daemon was told to.
func (d *daemon) startFleet(ctx context.Context) {
	var entries []fleet.Entry
	for name, e := range d.cfg.Environments {
		entries = append(entries, fleet.Entry{Name: name, Settings: e, Origin: fleet.Configured})
	}
	for _, e := range d.kept {
		if _, ok := d.cfg.Environments[e.Name]; ok {
			d.log.Warn().Str("environment", e.Name).Msg("the configuration has an environment of the name of one that was added, which counts no more")
			continue
		}
		entries = append(entries, e)
	}
	for _, e := range entries {
		d.cautions(ctx, e.Settings, func(note string) { d.log.Warn().Str("environment", e.Name).Msg(note) })
	}
	slices.SortFunc(entries, func(a, b fleet.Entry) int { return strings.Compare(a.Name, b.Name) })
	d.fleet.Start(entries...)
}

// announce logs, once, what serves from now on, and where.
func (d *daemon) announce(listen string) {
	d.log.Info().Str("version", Version).Str("root", d.cfg.Root).Str("runtime", d.cfg.Runtime).Str("listen", listen).
		Int("environments", len(d.fleet.List())).Msg("exec-server serves")
}

// cautions tells what about an environment will fail later, or is not safe.
func (d *daemon) cautions(ctx context.Context, e config.Environment, note func(string)) {
	if file := e.KeyFile; file != "" {
		st, err := os.Stat(file)
		switch {
		case err != nil:
			note(fmt.Sprintf("the key file is not there yet: %s", err))
		case st.IsDir():
			note(fmt.Sprintf("the key file %s is a directory", file))
		case st.Mode().Perm()&0o077 != 0:
			note(fmt.Sprintf("the key file %s can be read by others than its owner (mode %#o)", file, st.Mode().Perm()))
		}
	}
	if e.Profile == "" {
		e.Profile = d.cfg.DefaultProfile
	}
	if _, ok := d.cfg.Profiles[e.Profile]; ok && d.images != nil {
		if name := spec(&d.cfg, "", e.Profile).Image; d.images(ctx, name) != nil {
			note(imageMissing(&d.cfg, name).Error())
		}
	}
}

// profile is the one that an environment is made from.
func (d *daemon) profile(name string) string {
	if d.fleet != nil {
		if p := d.fleet.Profile(name); p != "" {
			return p
		}
	}
	return d.cfg.DefaultProfile
}

var errPassing = errors.New("the exec-server of this root runs one command only, and serves no environments")

// AddEnvironment implements control.Backend.
func (d *daemon) AddEnvironment(ctx context.Context, a control.AddEnvironment) (control.Added, error) {
	if d.fleet == nil {
		return control.Added{}, errPassing
	}
	e := fleet.Entry{Name: a.Name, Settings: a.Settings, Origin: fleet.Added}
	if a.Key != "" {
		var err error
		if e.Source, err = credential.Bearer(a.Key); err != nil {
			return control.Added{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, addTime)
	defer cancel()
	m, err := d.fleet.Add(ctx, e)
	if err != nil {
		return control.Added{}, err
	}
	d.log.Info().Str("environment", a.Name).Msg("environment added")
	added := control.Added{Kept: m.Kept()}
	if !added.Kept {
		added.Notes = append(added.Notes, "it is served until the daemon ends: a key from standard input is not kept")
	}
	if _, ok := d.cfg.Environments[a.Name]; ok {
		added.Notes = append(added.Notes, "the configuration has an environment of that name too: the next start takes that one")
	}
	d.cautions(ctx, a.Settings, func(note string) { added.Notes = append(added.Notes, note) })
	return added, nil
}

// addTime bounds the search for credentials of an environment that is added.
const addTime = time.Minute

// RemoveEnvironment implements control.Backend.
func (d *daemon) RemoveEnvironment(ctx context.Context, name string) (control.Removed, error) {
	if d.fleet == nil {
		return control.Removed{}, errPassing
	}
	if err := d.fleet.Remove(ctx, name); err != nil {
		return control.Removed{}, fmt.Errorf("environment %s: %w", name, err)
	}
	d.log.Info().Str("environment", name).Msg("environment removed")
	var removed control.Removed
	if _, ok := d.cfg.Environments[name]; ok {
		removed.Notes = append(removed.Notes, "the configuration has it still: the next start serves it again")
	}
	return removed, nil
}

// Environments implements control.Backend.
func (d *daemon) Environments(ctx context.Context) ([]control.Environment, error) {
	if d.fleet == nil {
		return nil, errPassing
	}
	census := d.gateway.Census(ctx)
	var list []control.Environment
	for _, i := range d.fleet.List() {
		row := control.Environment{
			Name: i.Name, State: string(i.Status.State), Transport: string(i.Status.Transport),
			ConnectedSince: moment(i.Status.Since), Reconnects: i.Status.Reconnects, Streams: i.Status.Streams,
			LastError: i.Status.LastError, LastErrorAt: moment(i.Status.LastErrorAt), NextTry: moment(i.Status.NextTry),
			Profile: i.Settings.Profile,
			Remote:  shown(i.Settings.Remote), EnvironmentID: i.Settings.EnvironmentID, Origin: string(i.Origin), Kept: i.Kept,
		}
		counts, running := census[i.Name]
		delete(census, i.Name)
		list = append(list, counted(row, counts, running))
	}
	for name, counts := range census {
		list = append(list, counted(control.Environment{Name: name, State: "running", Profile: d.cfg.DefaultProfile}, counts, true))
	}
	slices.SortFunc(list, func(a, b control.Environment) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// shown is a URL without a password, which the command line may have put into it.
func shown(remote string) string {
	if u, err := url.Parse(remote); err == nil && u.User != nil {
		return u.Redacted()
	}
	return remote
}

// counted puts what is in an environment's sandbox into its row.
func counted(row control.Environment, counts *proto.Counts, running bool) control.Environment {
	row.Running = running
	if !running {
		counts = &proto.Counts{}
	}
	if counts != nil {
		row.Sessions, row.Processes = &counts.Sessions, &counts.Processes
	}
	return row
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
