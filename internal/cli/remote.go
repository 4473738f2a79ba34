package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/remote/credential"
)

// remoteFlags are the reference's for the outbound mode, and one of our own.
type remoteFlags struct {
	Remote          *string `placeholder:"URL" help:"Register with the registry at this base URL and be reached through it, instead of listening."`
	RemoteTransport *string `placeholder:"noise|direct" help:"noise: many encrypted connections over one socket (the default); direct: one, needs --aws-sigv4."`
	Name            *string `placeholder:"NAME" help:"Name for people; it is not sent anywhere."`

	AgentIdentity      bool `name:"use-agent-identity-auth" help:"Refused: it needs a service of OpenAI."`
	RegistrationBearer bool `name:"registration-bearer-stdin" help:"Read a token for the registry from standard input, one line."`
	ExecutorCredential bool `name:"executor-credential-stdin" help:"Read tokens that replace each other from standard input, and exit when it closes."`

	AWSSigV4   bool    `name:"aws-sigv4" help:"Sign with AWS credentials; needs --remote-transport direct."`
	AWSProfile *string `name:"aws-profile" placeholder:"PROFILE" help:"Profile of AWS's configuration."`
	AWSRegion  *string `name:"aws-region" placeholder:"REGION" help:"Region to sign for."`
	AWSService *string `name:"aws-service" placeholder:"SERVICE" help:"Service to sign for (execute-api)."`

	ExitOnStdinClose bool `help:"Exit when standard input closes."`
	ExitOnRefusal    bool `name:"exit-on-registration-failure" help:"Exit with status 1 when the registry refuses, instead of trying again slowly."`
}

// chatGPTFlags are those of the outbound mode that forward does not have.
type chatGPTFlags struct {
	ChatGPTToken   bool    `name:"chatgpt-token-stdin" help:"Read an access token of ChatGPT from standard input, for a registry with https."`
	ChatGPTAccount *string `name:"chatgpt-account-id" placeholder:"ID" help:"The account of that token, if it does not say."`
}

const envExitOnStdinClose = "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE"

// given is a flag, and whether it was given.
type given struct {
	name string
	is   bool
}

// check finds the mistakes that the reference calls usage errors.
func (f *remoteFlags) check(c chatGPTFlags, hasID, hasListen bool) error {
	if err := fromEnv(&f.ExitOnStdinClose, envExitOnStdinClose, "--exit-on-stdin-close"); err != nil {
		return err
	}
	if t := f.RemoteTransport; t != nil && *t != config.Noise && *t != config.Direct {
		return usageError(fmt.Sprintf("invalid value '%s' for '--remote-transport <REMOTE_TRANSPORT>': expected 'noise' or 'direct'", *t))
	}
	sources := []given{
		{"--use-agent-identity-auth", f.AgentIdentity},
		{"--registration-bearer-stdin", f.RegistrationBearer},
		{"--executor-credential-stdin", f.ExecutorCredential},
		{"--chatgpt-token-stdin", c.ChatGPTToken},
		{"--aws-sigv4", f.AWSSigV4},
	}
	if f.Remote != nil && !hasID {
		return usageError("--remote needs --environment-id")
	}
	for _, flag := range append([]given{
		{"--remote-transport", f.RemoteTransport != nil},
		{"--chatgpt-account-id", c.ChatGPTAccount != nil},
		{"--aws-profile", f.AWSProfile != nil},
		{"--aws-region", f.AWSRegion != nil},
		{"--aws-service", f.AWSService != nil},
		{"--exit-on-stdin-close", f.ExitOnStdinClose},
		{"--exit-on-registration-failure", f.ExitOnRefusal},
	}, sources...) {
		if flag.is && f.Remote == nil {
			return usageError(flag.name + " needs --remote and --environment-id")
		}
	}
	var source string
	for _, flag := range sources {
		if flag.is && source != "" {
			return usageError(fmt.Sprintf("%s cannot be used with %s", source, flag.name))
		}
		if flag.is {
			source = flag.name
		}
	}
	switch {
	case f.Remote != nil && hasListen:
		return usageError("--remote cannot be used with --listen")
	case c.ChatGPTAccount != nil && !c.ChatGPTToken:
		return usageError("--chatgpt-account-id needs --chatgpt-token-stdin")
	case (f.AWSProfile != nil || f.AWSRegion != nil || f.AWSService != nil) && !f.AWSSigV4:
		return usageError("--aws-profile, --aws-region and --aws-service need --aws-sigv4")
	case f.transport() == config.Direct && !f.AWSSigV4:
		return usageError("--remote-transport direct needs --aws-sigv4")
	}
	return nil
}

func (f *remoteFlags) transport() string {
	if f.RemoteTransport != nil {
		return *f.RemoteTransport
	}
	return config.Noise
}

// environment has the settings for the registry's environment of that id.
func (f *remoteFlags) environment(id string) config.Environment {
	return config.Environment{
		Remote: *f.Remote, EnvironmentID: strings.TrimSpace(id), Transport: f.transport(),
		AWSProfile: value(f.AWSProfile), AWSRegion: value(f.AWSRegion), AWSService: value(f.AWSService),
	}
}

// warnOfQuery tells that a query makes another URL than meant: calls are appended to
// the text, as in the reference.
func (f *remoteFlags) warnOfQuery(w io.Writer) {
	if u, err := url.Parse(*f.Remote); err == nil && u.RawQuery != "" {
		fmt.Fprintln(w, "exec-server: warning: the URL of --remote has a query, and the paths of the registry's calls become part of that")
	}
}

func value(flag *string) string {
	if flag == nil {
		return ""
	}
	return *flag
}

// source is the credential that the flags name, or else codex's variable or login.
// It may wait for standard input. nil is the one of the settings: AWS's, or what
// the configuration names.
func (f *remoteFlags) source(ctx context.Context, c chatGPTFlags, in io.Reader, e config.Environment, configured bool) (credential.Source, error) {
	switch {
	case f.AWSSigV4 && f.transport() != config.Direct:
		return nil, errors.New("--aws-sigv4 requires --remote-transport direct")
	case f.AWSSigV4:
		return nil, nil
	case f.AgentIdentity:
		return nil, errors.New("this server does not offer --use-agent-identity-auth: it needs a service of OpenAI")
	case f.ExecutorCredential:
		return credential.ExecutorStdin(ctx, in, e.EnvironmentID)
	case !f.RegistrationBearer && !c.ChatGPTToken:
		if configured {
			return nil, nil
		}
		return credential.FromEnvironment(ctx)
	}
	type outcome struct {
		source credential.Source
		err    error
	}
	read := make(chan outcome, 1)
	go func() { // which may take as long as whoever writes
		var o outcome
		if f.RegistrationBearer {
			o.source, o.err = credential.BearerStdin(in)
		} else {
			o.source, o.err = credential.ChatGPTStdin(in, value(c.ChatGPTAccount))
		}
		read <- o
	}()
	select {
	case o := <-read:
		return o.source, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// closed is closed when whoever started us closes standard input, if that was to
// be noticed here: an executor's credentials notice by themselves.
func (f *remoteFlags) closed(in io.Reader) <-chan struct{} {
	left := make(chan struct{})
	if f.ExitOnStdinClose && !f.ExecutorCredential {
		go func() {
			defer close(left)
			_, _ = io.Copy(io.Discard, in)
		}()
	}
	return left
}
