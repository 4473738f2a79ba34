package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/proto"
)

type runCmd struct {
	Profile string   `placeholder:"NAME" help:"Profile to make the environment from (the default profile)."`
	Image   string   `placeholder:"REF" help:"Image to use instead of the profile's."`
	User    string   `placeholder:"USER" help:"User to run as: name, uid, name:group or uid:gid."`
	Cwd     string   `placeholder:"DIR" help:"Working directory inside (the image's, else /workspace)."`
	Env     []string `short:"e" sep:"none" placeholder:"NAME=VALUE" help:"Variable to set; may be repeated."`
	Network string   `enum:",none,rules,open" default:"" placeholder:"none|rules|open" help:"Network mode instead of the profile's; its rules stay."`
	TTY     string   `enum:"auto,yes,no" default:"auto" help:"Whether the command gets a terminal: auto, yes or no."`
	Command []string `arg:"" passthrough:"partial" help:"The command and its arguments, best behind --."`
}

// Run runs the command and ends with its exit code.
func (r *runCmd) Run(ctx context.Context, common *Common, std Streams) error {
	cfg, err := common.load()
	if err != nil {
		return err
	}
	if len(r.Command) > 0 && r.Command[0] == "--" {
		r.Command = r.Command[1:]
	}
	if len(r.Command) == 0 {
		return usageError("run: no command given")
	}
	for _, pair := range r.Env {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" {
			return usageError(fmt.Sprintf("run: --env %q is not NAME=VALUE", pair))
		}
	}
	if r.Cwd != "" && !filepath.IsAbs(r.Cwd) {
		return usageError(fmt.Sprintf("run: --cwd %q is not absolute", r.Cwd))
	}
	wanted := control.Throwaway{Profile: r.Profile, Image: r.Image, User: r.User, Cwd: r.Cwd, Env: r.Env, Network: r.Network}
	if cfg.Runtime != "host" { // which the root's server, having containers, would not be
		conn, err := control.DialThrowaway(controlSocket(cfg.Root), wanted)
		if err == nil {
			return r.attach(ctx, conn, std)
		} else if !errors.Is(err, control.ErrNoDaemon) {
			return err
		}
	}
	if _, err := os.Stat(cfg.Root); os.IsNotExist(err) && cfg.Runtime != "host" && cfg.Containerd.Address == "" {
		return imageMissing(&cfg, imageName(r.Image)) // and do not make a store to say so
	}
	// No daemon holds the root: be one for as long as the command runs.
	if common.LogLevel == "" {
		cfg.Log.Level = "fatal" // what goes wrong is said once, by us
	}
	d, err := startDaemon(ctx, cfg, std.Err, passing)
	if err != nil {
		return err
	}
	ours, theirs := net.Pipe()
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- d.ServeThrowaway(ctx, proto.NewStreamConn(theirs, proto.MaxRequest), wanted, func() error { close(ready); return nil })
		_ = theirs.Close()
	}()
	select {
	case <-ready:
		err = r.attach(ctx, proto.NewStreamConn(ours, proto.MaxAnswer), std)
		_ = ours.Close()
		<-served //nolint:errcheck // it ends because we have left
	case err = <-served:
	}
	// Others may have taken us for the root's server meanwhile.
	if d.control != nil {
		d.control.Drain()
	}
	return errors.Join(err, d.stop())
}
