package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/client"
	"github.com/exec-server/exec-server/internal/proto"
)

const (
	token  = "open-sesame-42"
	secret = "0123456789abcdef0123456789abcdef"
)

func TestFlagsAreJudgedAsByTheReference(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tok, sec := file("token", token), file("secret", secret)
	conf := file("config.toml", "version = 1\n[listen.auth]\nmode = \"capability-token\"\ntoken_file = \""+tok+"\"\n")
	for _, tt := range []struct {
		name string
		args []string
		want string
		code int
	}{
		{"mode", []string{"--ws-auth", "password"}, "--ws-auth must be one of", 2},
		{"no token", []string{"--ws-auth", "capability-token"}, "`--ws-token-file` or `--ws-token-sha256` is required", 1},
		{"empty path", []string{"--ws-auth", "capability-token", "--ws-token-file", ""}, "--ws-token-file needs a path", 2},
		{"missing file", []string{"--ws-auth", "capability-token", "--ws-token-file", dir + "/none"}, "failed to read websocket auth secret " + dir + "/none: No such file", 1},
		{"no mode", []string{"--ws-issuer", ""}, "websocket auth flags require", 1},
		{"skew", []string{"--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", sec, "--ws-max-clock-skew-seconds", "x"}, "--ws-max-clock-skew-seconds", 2},
		{"stdio", []string{"--listen", "stdio", "--ws-auth", "capability-token", "--ws-token-file", tok}, "WebSocket auth requires a WebSocket listener, not stdio", 1},
		{"stdio, configured", []string{"--listen", "stdio", "--config", conf}, "WebSocket auth requires a WebSocket listener, not stdio", 1},
		{"the table does not complete flags", []string{"--config", conf, "--ws-auth", "capability-token"}, "is required", 1},
		{"settings before the address", []string{"--listen", "x", "--ws-auth", "capability-token"}, "is required", 1},
		{"the address before files", []string{"--listen", "x", "--ws-auth", "capability-token", "--ws-token-file", dir + "/none"}, "unsupported --listen URL", 1},
		{"twice", []string{"--ws-auth", "capability-token", "--ws-auth", "signed-bearer-token"}, "--ws-auth cannot be used more than once", 2},
		{"outbound only", []string{"--exit-on-stdin-close"}, "needs --remote and --environment-id", 2},
		{"PID namespace", []string{"--linux-sandbox-pid-namespace", "ISOLATE"}, "expected 'isolate' or 'inherit'", 2},
		{"override as --config", []string{"--config", "sandbox_mode=x"}, "-c KEY=VALUE", 2},
		{"proxy without port", []string{"--tcp-upstream-proxy", "proxy"}, "invalid value 'proxy'", 2},
		{"proxy with scheme", []string{"--tcp-upstream-proxy", "http://proxy:80"}, "invalid value", 2},
		{"proxy without brackets", []string{"--tcp-upstream-proxy", "::1:80"}, "invalid value", 2},
		{"proxy port 0", []string{"--tcp-upstream-proxy", "proxy:0"}, "invalid value", 2},
		{"proxy", []string{"--tcp-upstream-proxy", "[::1]:80"}, "does not offer --tcp-upstream-proxy", 1},
		{"transparent", []string{"--linux-sandbox-transparent-tcp"}, "does not offer --linux-sandbox-transparent-tcp", 1},
		{"private", []string{"--proxy-private-ips-via-upstream"}, "does not offer --proxy-private-ips-via-upstream", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, stderr, code := cli(t, "", append([]string{"--runtime", "host"}, tt.args...)...)
			if code != tt.code || out != "" || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit %d, printed %q, %q", code, out, stderr)
			}
		})
	}
}

func TestVariablesOfTheReference(t *testing.T) {
	for _, tt := range []struct {
		name, value, want string
		code              int
	}{
		{"CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE", "true", "--exit-on-stdin-close needs", 2},
		{"CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE", "1", "invalid value '1'", 2},
		{"CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE", "", "invalid value ''", 2},
		{"CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE", "false", "", 0},
		{"CODEX_EXEC_SERVER_PROXY_PRIVATE_IPS_VIA_UPSTREAM", "true", "does not offer", 1},
		{"CODEX_EXEC_SERVER_PROXY_PRIVATE_IPS_VIA_UPSTREAM", "yes", "invalid value 'yes'", 2},
		{"CODEX_EXEC_SERVER_PROXY_PRIVATE_IPS_VIA_UPSTREAM", "false", "", 0},
	} {
		t.Setenv("CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE", "false")
		t.Setenv("CODEX_EXEC_SERVER_PROXY_PRIVATE_IPS_VIA_UPSTREAM", "false")
		t.Setenv(tt.name, tt.value)
		out, stderr, code := cli(t, "", "--runtime", "host", "--listen", "stdio")
		if code != tt.code || out != "" || tt.want != "" && !strings.Contains(stderr, tt.want) {
			t.Errorf("%s=%s: exit %d, printed %q, %q", tt.name, tt.value, code, out, stderr)
		}
	}
}

func TestWhatHasNoEffectIsSaid(t *testing.T) {
	s := serve(t, "--runtime", "host", "-c", "a=b", "-c", "model=\"x\"", "--enable", "x", "--disable", "y", "--strict-config", "--linux-sandbox-pid-namespace", "inherit")
	if got := s.connect("/", "").sh("echo $((40 + 2))"); got != "42" {
		t.Errorf("the shell says %q", got)
	}
	s.stop(syscall.SIGTERM)
	if log := s.logs.String(); strings.Count(log, "no effect") != 2 {
		t.Error(log)
	}
}

func TestAuthentication(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(conf, []byte("version = 1\n[listen.auth]\nmode = \"capability-token\"\ntoken_file = \""+path+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--ws-auth", "capability-token", "--ws-token-file", path}, {"--config", conf}} {
		s := serve(t, append([]string{"--runtime", "host", "--log-level", "debug"}, args...)...)
		dial := func(header string) error {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			c, err := client.Dial(ctx, s.url, http.Header{"Authorization": {header}})
			if err == nil {
				_ = c.Close()
			}
			return err
		}
		if err := dial("Bearer " + token); err != nil {
			t.Error(err)
		}
		if err := dial("Bearer not-" + token); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("a wrong token: %v", err)
		}
		s.stop(syscall.SIGTERM)
		if strings.Contains(s.logs.String(), token) {
			t.Error("the token is in the log")
		}
	}
}

// A harness that has asked for more than is read, and goes, can come back at once.
func TestTheEndIsNoticedHoweverMuchWasAsked(t *testing.T) {
	t.Run("host", func(t *testing.T) { leaveAndComeBack(t, serve(t, "--runtime", "host")) })
	t.Run("container", func(t *testing.T) { leaveAndComeBack(t, newRoot(t, "").serve()) })
}

func leaveAndComeBack(t *testing.T, s *server) {
	for _, size := range []int{10, 20 << 10} { // what fits into sockets, and what does not
		conn, err := client.Dial(t.Context(), s.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		send := func(format string, args ...any) error {
			return conn.WriteFrames(proto.FrameOf(fmt.Appendf(nil, format, args...)))
		}
		_ = send(`{"id":1,"method":"initialize","params":{"clientName":"e2e"}}`)
		f, err := conn.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		v, err := proto.Parse(f.Body())
		if err != nil {
			t.Fatal(err)
		}
		session := v.Get("result").Get("sessionId").Str()
		_ = send(`{"method":"initialized"}`)
		_ = send(`{"id":2,"method":"process/start","params":{"processId":"p","argv":["/bin/sleep","1000"],"cwd":"file:///","env":{},"tty":false}}`)
		_ = send(`{"id":3,"method":"process/read","params":{"processId":"p","waitMs":600000}}`)
		stuck := time.AfterFunc(2*time.Second, func() { _ = conn.Close() })
		for range 1000 {
			if send(`{"id":4,"method":"environment/status","x":"%s"}`, strings.Repeat("x", size)) != nil {
				break
			}
		}
		stuck.Stop()
		_ = conn.Close()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			h, err := s.tryConnect("/", session)
			if err == nil {
				if _, err := h.call("process/terminate", map[string]string{"processId": "p"}); err != nil {
					t.Error(err)
				}
				break
			}
			if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
}
