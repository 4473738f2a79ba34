package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/control"
)

type envCmd struct {
	Add envAddCmd `cmd:"" help:"Register an environment with a registry, and serve it."`
	Rm  envRmCmd  `cmd:"" help:"End an environment. Its workspace stays."`
	Ls  envLsCmd  `cmd:"" help:"List environments, with where their connections to registries stand."`

	Policy envPolicyCmd `cmd:"" help:"Show, change and explain the network policy of an environment."`
}

type envAddCmd struct {
	Name          string `arg:"" help:"Name of the environment."`
	Remote        string `placeholder:"URL" help:"Base URL of the registry ([remote] of the configuration)."`
	EnvironmentID string `placeholder:"ID" help:"What the registry calls it (its name)."`
	Transport     string `enum:",noise,direct" default:"" placeholder:"noise|direct" help:"noise (the default), or direct with AWS credentials."`
	Profile       string `placeholder:"NAME" help:"Profile to make it from (the default profile)."`
	KeyFile       string `xor:"key" placeholder:"FILE" help:"File with the token for the registry."`
	KeyEnv        string `xor:"key" placeholder:"VARIABLE" help:"Variable of the server's with the token."`
	KeyCommand    string `xor:"key" placeholder:"COMMAND" help:"Command that prints the token, run by the server with /bin/sh."`
	KeyStdin      bool   `xor:"key" help:"Read the token from standard input. The environment ends with the server then."`
	AWSProfile    string `name:"aws-profile" placeholder:"PROFILE" help:"Profile of AWS's configuration, for direct."`
	AWSRegion     string `name:"aws-region" placeholder:"REGION" help:"Region to sign for, for direct."`
	AWSService    string `name:"aws-service" placeholder:"SERVICE" help:"Service to sign for, for direct (execute-api)."`
	Proxy         string `placeholder:"URL" help:"Proxy on the way to the registry, or none."`
	NoProxy       string `placeholder:"HOSTS" help:"What is reached without the proxy, as in NO_PROXY."`
	CAFile        string `name:"ca-file" placeholder:"FILE" help:"Certificates to trust besides the system's."`
}

// maxKey bounds a token, in bytes.
const maxKey = 16384

// Run adds the environment.
func (a *envAddCmd) Run(ctx context.Context, common *Common, std Streams) error {
	wanted := control.AddEnvironment{Name: a.Name, Settings: config.Environment{
		Remote: a.Remote, EnvironmentID: a.EnvironmentID, Transport: a.Transport, Profile: a.Profile,
		Key:        config.Key{KeyEnv: a.KeyEnv},
		AWSProfile: a.AWSProfile, AWSRegion: a.AWSRegion, AWSService: a.AWSService,
		Way: config.Way{Proxy: a.Proxy, NoProxy: a.NoProxy},
	}}
	for to, path := range map[*string]string{&wanted.Settings.KeyFile: a.KeyFile, &wanted.Settings.CAFile: a.CAFile} {
		if path == "" {
			continue
		}
		var err error
		if *to, err = filepath.Abs(path); err != nil {
			return err
		}
	}
	if a.KeyCommand != "" {
		wanted.Settings.KeyCommand = []string{"/bin/sh", "-c", a.KeyCommand}
	}
	if a.KeyStdin {
		text, err := io.ReadAll(io.LimitReader(bufio.NewReader(std.In), maxKey+1))
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		wanted.Key = strings.TrimSpace(string(text))
		if wanted.Key == "" || len(text) > maxKey {
			return fmt.Errorf("there is no token of 1 to %d bytes on standard input", maxKey)
		}
	}
	return common.ask(func(socket string) error {
		added, err := control.Add(ctx, socket, wanted)
		if err != nil {
			return asFlags(err)
		}
		notes(std, added.Notes)
		_, err = fmt.Fprintln(std.Out, "added", a.Name)
		return err
	})
}

type envRmCmd struct {
	Name string `arg:"" help:"Name of the environment."`
}

// Run removes the environment.
func (r *envRmCmd) Run(ctx context.Context, common *Common, std Streams) error {
	return common.ask(func(socket string) error {
		removed, err := control.Remove(ctx, socket, r.Name)
		if err != nil {
			return err
		}
		notes(std, removed.Notes)
		_, err = fmt.Fprintln(std.Out, "removed", r.Name)
		return err
	})
}

func notes(std Streams, notes []string) {
	for _, note := range notes {
		fmt.Fprintln(std.Err, "exec-server: warning:", note)
	}
}

// ask does something with the socket of the daemon that is meant: that of the
// root, with the runtime that was said before the other.
func (c *Common) ask(do func(socket string) error) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	sockets := []string{controlSocket(cfg.Root), hostSocket(cfg.Root)}
	if cfg.Runtime == "host" {
		sockets[0], sockets[1] = sockets[1], sockets[0]
	}
	err = do(sockets[0])
	if errors.Is(err, control.ErrNoDaemon) {
		err = do(sockets[1])
	}
	switch {
	case errors.Is(err, control.ErrNoDaemon):
		return noDaemonError(cfg.Root)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the exec-server of root %s does not answer", cfg.Root)
	}
	return err
}

// noDaemonError says that no server can be asked, and has the root.
type noDaemonError string

// Error says what to do.
func (e noDaemonError) Error() string {
	return "no exec-server is running for root " + string(e) + ": start one, or choose the root of another with --root or --config"
}

// asFlags has the flag in the place of the configuration's key for it.
func asFlags(err error) error {
	key, text, named := strings.Cut(err.Error(), ": ")
	switch {
	case strings.HasPrefix(err.Error(), "remote is missing"):
		return errors.New("--remote" + strings.TrimPrefix(err.Error(), "remote"))
	case strings.HasPrefix(err.Error(), "there is no key for the registry"):
		return errors.New("there is no key for the registry: give --key-file, --key-env, --key-command or --key-stdin")
	case named && slices.Contains(settingKeys, key):
		return errors.New("--" + strings.ReplaceAll(key, "_", "-") + ": " + text)
	}
	return err
}

// settingKeys are those of an environment that env add has a flag for.
var settingKeys = []string{
	"remote", "environment_id", "transport", "profile", "key_file", "key_env", "key_command",
	"aws_profile", "aws_region", "aws_service", "proxy", "no_proxy", "ca_file",
}

type envLsCmd struct {
	JSON bool `name:"json" help:"Print all there is to tell, as JSON."`
}

// Run lists the environments.
func (l *envLsCmd) Run(ctx context.Context, common *Common, std Streams) error {
	ctx, cancel := context.WithTimeout(ctx, lsTime)
	defer cancel()
	var list []control.Environment
	err := common.ask(func(socket string) (err error) {
		list, err = control.List(ctx, socket)
		return err
	})
	if err != nil {
		return err
	}
	if l.JSON {
		if list == nil {
			list = []control.Environment{}
		}
		return printJSON(std.Out, list)
	}
	if cfg, err := common.load(); err == nil {
		fmt.Fprintln(std.Err, "exec-server: environments of root", cfg.Root)
	}
	return table(std.Out, list, time.Now())
}

// lsTime is how long a server may take to tell about its environments.
const lsTime = 10 * time.Second

// mostTrouble bounds what the table tells of an error, in characters.
const mostTrouble = 120

func table(w io.Writer, list []control.Environment, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tSTATE\tTRANSPORT\tCONNECTED\tRECONNECTS\tSESSIONS\tPROCESSES\tLAST ERROR")
	for _, e := range list {
		transport, reconnects, since := "-", "-", "-"
		if e.Transport != "" {
			transport, reconnects = e.Transport, strconv.Itoa(e.Reconnects)
		}
		if e.ConnectedSince != nil {
			since = age(now.Sub(*e.ConnectedSince))
		}
		trouble := oneLine(e.LastError)
		if e.LastErrorAt != nil {
			trouble += " (" + age(now.Sub(*e.LastErrorAt)) + " ago)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Name, e.State, transport, since, reconnects, number(e.Sessions), number(e.Processes), trouble)
	}
	return t.Flush()
}

// number is one that may not be known.
func number(n *int) string {
	if n == nil {
		return "?"
	}
	return strconv.Itoa(*n)
}

// age is a span in its largest unit: "59s", "3m", "5h", "12d".
func age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// oneLine makes a registry's words fit to be printed, and not too many.
func oneLine(s string) string {
	s = printable(s)
	if runes := []rune(s); len(runes) > mostTrouble {
		s = string(runes[:mostTrouble]) + "…"
	}
	return s
}

// printable has spaces in the place of what a terminal would act on.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
