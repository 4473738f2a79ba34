// Package cli is the command line: flags and the configuration file come
// together here, and the packages are wired by them.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// Version is the program's version; the build sets it.
var Version = "dev"

// Exit statuses.
const (
	exitFailure = 1
	exitUsage   = 2
)

// Streams are what a command reads and writes.
type Streams struct {
	In       *os.File
	Out, Err io.Writer
}

type commands struct {
	Common
	Serve   serveCmd   `cmd:"" default:"withargs" help:"Serve harnesses (the default command). Takes the flags of codex exec-server."`
	Forward forwardCmd `cmd:"" help:"Register an exec-server that only listens, and forward connections to it."`
	Run     runCmd     `cmd:"" help:"Run one command in a throw-away environment, with the terminal attached, and exit with its code."`
	Env     envCmd     `cmd:"" help:"Add, remove and list the environments of a running server, and change their network policies."`
	Image   imageCmd   `cmd:"" help:"Build, import, pull, list and remove images."`
	Doctor  doctorCmd  `cmd:"" help:"Check this machine for everything that is needed."`
	Config  configCmd  `cmd:"" help:"Print a configuration file with all keys and their defaults."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// statusError ends the program with a status and no further words.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Main runs the program and returns its exit status.
func Main(ctx context.Context, args []string, std Streams) int {
	// "codex exec-server --listen …" with the first word exchanged.
	if len(args) > 0 && args[0] == "exec-server" {
		args = args[1:]
	}
	var c commands
	exited, status := false, 0
	parser, err := kong.New(&c,
		kong.Name("exec-server"),
		kong.Description("A sandbox for coding agents that speaks the protocol of codex exec-server."),
		kong.Writers(std.Out, std.Err),
		kong.Exit(func(code int) { exited, status = true, code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		fmt.Fprintln(std.Err, "exec-server:", err)
		return exitFailure
	}
	k, err := parser.Parse(args)
	if exited { // --help
		return status
	}
	if err == nil {
		err = once(k)
	}
	if err != nil {
		fmt.Fprintf(std.Err, "exec-server: %s (see --help)\n", optional.Replace(err.Error()))
		return exitUsage
	}
	k.BindTo(ctx, (*context.Context)(nil))
	err = k.Run(&c, &c.Common, std)
	if code, ok := errors.AsType[statusError](err); ok {
		return int(code)
	}
	if usage, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(std.Err, "exec-server: %s (see --help)\n", usage)
		return exitUsage
	}
	if err != nil {
		fmt.Fprintln(std.Err, "exec-server:", err)
		return exitFailure
	}
	return 0
}

// optional leaves out of the parser's words what need not be said.
var optional = strings.NewReplacer(` must be one of "",`, " must be one of ", `"env policy <name> <command>"`, `"env policy <name>"`)

// once refuses a flag that is given twice, of which one would win unnoticed.
func once(k *kong.Context) error {
	seen := map[*kong.Flag]bool{}
	for _, p := range k.Path {
		if p.Flag == nil || p.Flag.IsSlice() || p.Flag.IsMap() {
			continue
		}
		if seen[p.Flag] {
			return fmt.Errorf("--%s cannot be used more than once", p.Flag.Name)
		}
		seen[p.Flag] = true
	}
	return nil
}

// usageError is a mistake on the command line.
type usageError string

func (u usageError) Error() string { return string(u) }

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(std Streams) error {
	_, err := fmt.Fprintln(std.Out, "exec-server", Version)
	return err
}
