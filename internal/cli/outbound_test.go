package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/client"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
)

// remoteArgs are those of a server without containers behind a peer.
func remoteArgs(t *testing.T, p *remotetest.Peer, more ...string) []string {
	t.Helper()
	return append([]string{"--runtime", "host", "--root", t.TempDir(), "--remote", p.URL, "--environment-id", "env"}, more...)
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// serves holds a program to being an executor.
func serves(t *testing.T, p *remotetest.Peer, environmentID string) {
	t.Helper()
	ctx := within(t)
	conn, err := p.Open(ctx, environmentID)
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(conn, nil)
	defer c.Close()
	if _, err := c.Initialize(ctx, "test", ""); err != nil {
		t.Fatal(err)
	}
	if status, err := c.Call(ctx, "environment/status", nil); err != nil || status.Get("status").Str() != "ready" {
		t.Fatalf("the status is %v, %v", status, err)
	}
}

// credentials are the sources, with what the registry is to see of them.
func TestCredentialsOfTheCommandLine(t *testing.T) {
	frame := func(token string) string {
		return fmt.Sprintf(`{"version":1,"environment_id":"env","token":%q,"expires_at":%d}`+"\n", token, time.Now().Add(time.Hour).Unix())
	}
	for name, tt := range map[string]struct {
		flags, variable, authJSON, config, stdin string
		bearer, account                          string
	}{
		"CODEX_API_KEY":            {variable: "sk-one", bearer: "sk-one"},
		"an API key on disk":       {authJSON: `{"auth_mode":"apikey","OPENAI_API_KEY":"sk-two"}`, bearer: "sk-two"},
		"a login on disk":          {authJSON: `{"tokens":{"access_token":"access","account_id":"acc"}}`, bearer: "access", account: "acc"},
		"the variable comes first": {variable: "sk-one", authJSON: `{"auth_mode":"apikey","OPENAI_API_KEY":"sk-two"}`, bearer: "sk-one"},
		"a bearer":                 {flags: "--registration-bearer-stdin", variable: "sk-one", stdin: "tok\r\n", bearer: "tok"},
		"an executor's":            {flags: "--executor-credential-stdin", variable: "sk-one", stdin: frame("tok"), bearer: "tok"},
		"the configuration's":      {variable: "sk-one", config: "key_file = %q", bearer: "sk-file"},
		"a flag comes before it":   {flags: "--registration-bearer-stdin", config: "key_file = %q", stdin: "tok\n", bearer: "tok"},
	} {
		t.Run(name, func(t *testing.T) {
			bare(t)
			peer := remotetest.New(t, remotetest.Options{})
			args := remoteArgs(t, peer, strings.Fields(tt.flags)...)
			if tt.variable != "" {
				t.Setenv("CODEX_API_KEY", tt.variable)
			}
			dir := os.Getenv("CODEX_HOME")
			for file, text := range map[string]string{"auth.json": tt.authJSON, "key": "sk-file\n", "config.toml": "version = 1\n[remote]\n" + fmt.Sprintf(tt.config, filepath.Join(dir, "key"))} {
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tt.config != "" {
				args = append(args, "--config", filepath.Join(dir, "config.toml"))
			}
			p := start(t, args...)
			if tt.stdin != "" {
				p.write(tt.stdin)
			}
			serves(t, peer, "env")
			for _, c := range peer.Calls("env", remotetest.Register, remotetest.Validate) {
				if c.Header.Get("Authorization") != "Bearer "+tt.bearer || c.Header.Get("Chatgpt-Account-Id") != tt.account {
					t.Errorf("%s has the header %v", c.Kind, c.Header)
				}
			}
			p.stop()
			p.ends(0)
			if got := p.err.String(); strings.Contains(got, tt.bearer) {
				t.Errorf("the token is in the log: %s", got)
			}
			if p.out.String() != "" {
				t.Errorf("standard output has %q", p.out)
			}
		})
	}
}

func TestAnIdThatIsNoName(t *testing.T) {
	bare(t)
	t.Setenv("CODEX_API_KEY", "sk-one")
	peer := remotetest.New(t, remotetest.Options{})
	p := start(t, append(remoteArgs(t, peer)[:6], "--environment-id", "team:box")...)
	serves(t, peer, "team:box")
	p.stop()
	p.ends(0)
	if got := p.err.String(); !strings.Contains(got, `"environment_id":"team:box"`) {
		t.Errorf("the log is %s", got)
	}
}

func TestExecutorsCredentialsReplaceEachOther(t *testing.T) {
	bare(t)
	peer := remotetest.New(t, remotetest.Options{})
	p := start(t, remoteArgs(t, peer, "--executor-credential-stdin")...)
	for _, token := range []string{"tok-1", "tok-2"} {
		p.write(fmt.Sprintf(`{"version":1,"environment_id":"env","token":%q,"expires_at":%d}`+"\n", token, time.Now().Add(time.Hour).Unix()))
		for deadline := time.Now().Add(patience); ; { // the line is read sooner or later
			serves(t, peer, "env")
			calls := peer.Calls("env", remotetest.Validate)
			if calls[len(calls)-1].Header.Get("Authorization") == "Bearer "+token {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is not used", token)
			}
		}
	}
	if n := len(peer.Calls("env", remotetest.Register)); n != 1 {
		t.Errorf("there are %d registrations; expected 1", n)
	}
	_ = p.in.Close()
	p.ends(0)
}

func TestTheEndOfStandardInput(t *testing.T) {
	for name, tt := range map[string]struct {
		flags    []string
		variable string
		ends     bool
	}{
		"is nothing":           {nil, "", false},
		"is the end by a flag": {[]string{"--exit-on-stdin-close"}, "", true},
		"and by a variable":    {nil, "true", true},
	} {
		t.Run(name, func(t *testing.T) {
			bare(t)
			t.Setenv("CODEX_API_KEY", "sk-one")
			if tt.variable != "" {
				t.Setenv(envExitOnStdinClose, tt.variable)
			}
			peer := remotetest.New(t, remotetest.Options{})
			p := start(t, remoteArgs(t, peer, tt.flags...)...)
			serves(t, peer, "env")
			_ = p.in.Close()
			if tt.ends {
				p.ends(0)
				return
			}
			serves(t, peer, "env")
			p.stop()
			p.ends(0)
		})
	}
}

func TestARegistryThatRefuses(t *testing.T) {
	const words = "environment registry authentication error: environment registry authentication failed (403 Forbidden): not yours (with the key from CODEX_API_KEY)"
	refuse := func(f *remotetest.Faults) {
		f.Register = remotetest.Plan{Status: http.StatusForbidden, Count: 1, Code: "x", Message: "not yours"}
	}
	for _, forward := range []bool{false, true} {
		bare(t)
		t.Setenv("CODEX_API_KEY", "sk-one")
		peer := remotetest.New(t, remotetest.Options{})
		peer.Set("env", refuse)
		args := []string{"--exit-on-registration-failure"}
		if forward {
			args = []string{"forward", "--connect", "ws://127.0.0.1:9", "--exit-on-registration-failure"}
		}
		p := start(t, append(args, remoteArgs(t, peer)...)...)
		p.ends(1)
		if got := p.err.String(); !strings.HasSuffix(got, "exec-server: "+words+"\n") {
			t.Errorf("it says %s", got)
		}
	}
	bare(t)
	peer := remotetest.New(t, remotetest.Options{})
	peer.Set("env", refuse)
	login := func(text string) {
		if err := os.WriteFile(filepath.Join(os.Getenv("CODEX_HOME"), "auth.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	login(`{"auth_mode":"apikey","OPENAI_API_KEY":"sk-old"}`)
	p := start(t, remoteArgs(t, peer)...)
	if _, err := peer.AwaitCalls(within(t), "env", remotetest.Register, 1); err != nil {
		t.Fatal(err)
	}
	login(`{"auth_mode":"apikey","OPENAI_API_KEY":"sk-new"}`) // and not in five minutes
	serves(t, peer, "env")
	p.stop()
	p.ends(0)
	if got := p.err.String(); strings.Count(got, `"state":"failed"`) != 1 || !strings.Contains(got, "not yours") {
		t.Errorf("the log is %s", got)
	}
}
