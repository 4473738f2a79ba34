package credential

import (
	"fmt"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/secret"
)

func TestSourcesDoNotPrint(t *testing.T) {
	source := must(t)(Bearer("hunter2"))
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if text := fmt.Sprintf(verb, source); strings.Contains(text, "hunter2") {
			t.Error(text)
		}
	}
}

func TestAPIKey(t *testing.T) {
	s := must(t)(APIKey(" key\n"))
	if got := shown(t, s); got != "Bearer key" {
		t.Error(got)
	}
	for base, want := range map[string]bool{
		"http://127.0.0.1:1": true, "https://localhost": true, "http://[::1]:4": true, "http://127.9.9.9": true,
		"https://openai.com": true, "https://api.openai.org/x": true, "https://A.OpenAI.com": true, "https://a.openai.com.": true,
		"http://openai.com": false, "https://notopenai.com": false, "https://openai.com.evil.test": false, "https://h.test": false,
		"ftp://127.0.0.1": false, "http://localhost.evil.test": false, "https://openai.com@evil.test": false, "http://127.0.0.1.evil.test": false,
	} {
		allow(t, s, base, want)
	}
	if s.Scoped() || s.Changed() != nil || s.Done() != nil || s.Err() != nil {
		t.Error("a key that changes, ends or is made for one environment")
	}
}

func TestBearer(t *testing.T) {
	s := must(t)(Bearer("tok"))
	if got := shown(t, s); got != "Bearer tok" {
		t.Error(got)
	}
	for base, want := range map[string]bool{
		"https://h.test": true, "http://localhost:1": true, "http://LOCALHOST:1": true, "http://[::ffff:127.0.0.1]": true,
		"http://h.test": false, "http://10.0.0.1": false, "ws://localhost": false, "http://localhost.test": false,
	} {
		allow(t, s, base, want)
	}
}

func TestEnv(t *testing.T) {
	t.Setenv("THE_TOKEN", " tok ")
	if got := shown(t, must(t)(Env("THE_TOKEN"))); got != "Bearer tok" {
		t.Error(got)
	}
	t.Setenv("THE_TOKEN", "")
	if _, err := Env("THE_TOKEN"); err == nil || !strings.Contains(err.Error(), "THE_TOKEN") {
		t.Error(err)
	}
	if _, err := Env("NO_TOKEN_IS_HERE"); err == nil || err.Error() != "the server has no variable NO_TOKEN_IS_HERE (it is read from the daemon's environment)" {
		t.Error(err)
	}
}

func TestTokensThatAreNone(t *testing.T) {
	for _, bad := range []string{"", "hunter 2", "hunter\x00", "hunter\t2", "hunterü", "hunter\r\nx: y", "hunter\x7f", strings.Repeat("hunter2", 3000)} {
		_, err := Bearer(bad)
		if err == nil || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%.20q: %v", bad, err)
		}
		if _, err := APIKey(bad); err == nil || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	if _, err := Bearer(strings.Repeat("x", secret.Max)); err != nil {
		t.Error(err)
	}
}

func TestFromEnvironment(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	write(t, home+"/auth.json", `{"OPENAI_API_KEY":"from-file"}`)
	t.Setenv("CODEX_API_KEY", " from-env ")
	if got := shown(t, must(t)(FromEnvironment(t.Context()))); got != "Bearer from-env" {
		t.Error(got)
	}
	t.Setenv("CODEX_API_KEY", "")
	if got := shown(t, must(t)(FromEnvironment(t.Context()))); got != "Bearer from-file" {
		t.Error(got)
	}
	t.Setenv("CODEX_HOME", "")
	t.Setenv("HOME", home)
	if text := wantUnavailable(t, must(t)(FromEnvironment(t.Context()))); !strings.Contains(text, "set CODEX_API_KEY") || !strings.Contains(text, home+"/.codex") {
		t.Error(text)
	}
}
