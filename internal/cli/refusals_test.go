package cli

import (
	"strings"
	"testing"
)

// What is refused, and with which status, is the reference's.
func TestCommandLinesOfTheOutboundModeThatAreRefused(t *testing.T) {
	bare(t)
	const to = " --remote http://127.0.0.1:9 --environment-id e"
	const forward = "forward --connect ws://127.0.0.1:9"
	for line, want := range map[string]struct {
		status int
		says   string
	}{
		"--remote http://127.0.0.1:9":                             {2, "--remote needs --environment-id"},
		"--remote-transport noise":                                {2, "--remote-transport needs --remote"},
		"--environment-id e --registration-bearer-stdin":          {2, "--registration-bearer-stdin needs --remote"},
		"--exit-on-stdin-close":                                   {2, "--exit-on-stdin-close needs --remote"},
		"--exit-on-registration-failure":                          {2, "--exit-on-registration-failure needs --remote"},
		"--aws-region x":                                          {2, "--aws-region needs --remote"},
		to + " --listen ws://127.0.0.1:0":                         {2, "--remote cannot be used with --listen"},
		to + " --remote-transport udp":                            {2, "invalid value 'udp'"},
		to + " --remote-transport direct":                         {2, "direct needs --aws-sigv4"},
		to + " --aws-region x":                                    {2, "need --aws-sigv4"},
		to + " --chatgpt-account-id x":                            {2, "needs --chatgpt-token-stdin"},
		to + " --aws-sigv4 --registration-bearer-stdin":           {2, "--registration-bearer-stdin cannot be used with --aws-sigv4"},
		to + " --chatgpt-token-stdin --executor-credential-stdin": {2, "--executor-credential-stdin cannot be used with --chatgpt-token-stdin"},
		to + " --remote http://127.0.0.1:9":                       {2, "--remote cannot be used more than once"},

		to + " --aws-sigv4":                                                             {1, "--aws-sigv4 requires --remote-transport direct"},
		to + " --aws-sigv4 --remote-transport direct":                                   {1, "AWS SDK config did not resolve a region; name one with --aws-region"},
		to + " --use-agent-identity-auth":                                               {1, "this server does not offer --use-agent-identity-auth"},
		to + " --registration-bearer-stdin":                                             {1, "standard input is empty"},
		"--remote http://127.0.0.1:9/?x=1 --environment-id e --aws-sigv4":               {1, "warning: the URL of --remote has a query"},
		to + " --executor-credential-stdin":                                             {1, "executor credential pipe closed"},
		to + " --chatgpt-token-stdin":                                                   {1, "ChatGPT access token"},
		to + " --ws-auth capability-token":                                              {1, "is required when `--ws-auth capability-token`"},
		to + " --ws-auth capability-token --ws-token-sha256 " + strings.Repeat("0", 64): {1, "WebSocket listener auth cannot be used with --remote"},
		"--remote nonsense --environment-id e":                                          {1, "relative URL without a base"},
		"--remote http://127.0.0.1:9 --environment-id  ":                                {2, "--environment-id"},
		"--remote http://127.0.0.1:9 --environment-id= ":                                {1, "environment id is required"},
		"--remote ftp://127.0.0.1:9 --environment-id e":                                 {1, "it has to be http or https"},

		forward:                                                 {2, "--environment-id"},
		forward + " --environment-id e":                         {2, "forward needs --remote"},
		"forward" + to:                                          {2, "--connect"},
		forward + to + " --chatgpt-token-stdin":                 {2, "unknown flag --chatgpt-token-stdin"},
		forward + to + " --listen ws://127.0.0.1:0":             {2, "unknown flag --listen"},
		forward + to + " --remote-transport direct":             {2, "direct needs --aws-sigv4"},
		forward + to + " --remote-transport direct --aws-sigv4": {1, "direct exec-server transport does not support forwarding"},
		forward + to + " --aws-sigv4":                           {1, "--aws-sigv4 requires --remote-transport direct"},
		forward + to + " --registration-bearer-stdin":           {1, "expected a newline-terminated registration bearer"},
		forward + to + " --tcp-upstream-proxy h:1":              {1, "does not offer --tcp-upstream-proxy"},
		"forward --connect http://127.0.0.1:9" + to:             {1, "forward destination must be a ws:// or wss:// URL"},
	} {
		args := append(strings.Split(strings.TrimSpace(line), " "), "--root", t.TempDir(), "--log-level", "error")
		if !strings.HasPrefix(line, "forward") {
			args = append(args, "--runtime", "host")
		}
		p := start(t, args...)
		_ = p.in.Close()
		p.ends(want.status)
		if !strings.Contains(p.err.String(), want.says) {
			t.Errorf("%s: it says %q; expected %q", line, p.err, want.says)
		}
		if p.out.String() != "" {
			t.Errorf("%s: standard output has %q", line, p.out)
		}
	}
}

func TestAgentIdentityIsRefusedWithTheReason(t *testing.T) {
	bare(t)
	t.Setenv("CODEX_ACCESS_TOKEN", "secret-token")
	p := start(t, "--remote", "http://127.0.0.1:9", "--environment-id", "e", "--use-agent-identity-auth")
	p.ends(1)
	if got := p.err.String(); !strings.Contains(got, "it needs a service of OpenAI") || strings.Contains(got, "secret") {
		t.Errorf("it says %q", got)
	}
}
