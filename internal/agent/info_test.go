package agent

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
)

func TestEnvironmentInfo(t *testing.T) {
	gone := t.TempDir() + "/gone"
	for _, test := range []struct {
		opts Options
		want string
	}{
		{Options{Cwd: "/tmp", Home: "/home/a b", Shell: "/usr/bin/zsh"},
			`{"shell":{"name":"zsh","path":"/usr/bin/zsh"},"executorVersion":"0.171.0","providerId":"X","cwd":"file:///tmp","userHomeDir":"file:///home/a%20b","platformOs":"linux","prependPathDirs":[],"temporaryDirectories":[],"tempDir":"file:///tmp","capabilities":C}`},
		{Options{Cwd: gone, Home: "/", Env: []string{"TMPDIR=/var/tmp"}},
			`{"shell":{"name":"sh","path":"/bin/sh"},"executorVersion":"0.171.0","providerId":"X","cwd":null,"userHomeDir":"file:///","platformOs":"linux","prependPathDirs":[],"temporaryDirectories":["file:///var/tmp"],"tempDir":"file:///var/tmp","capabilities":C}`},
		{Options{Cwd: "/tmp", Home: "/", Shell: "/bin/ash", Env: []string{"TMPDIR=rel"}},
			`{"shell":{"name":"sh","path":"/bin/ash"},"executorVersion":"0.171.0","providerId":"X","cwd":"file:///tmp","userHomeDir":"file:///","platformOs":"linux","prependPathDirs":[],"temporaryDirectories":["file:///tmp/rel"],"tempDir":"file:///tmp/rel","capabilities":C}`},
	} {
		h := ready(t, newServer(t, test.opts), proto.Hello{})
		got := strings.TrimPrefix(h.result("environment/info", `{}`), "ok ")
		if !json.Valid([]byte(got)) {
			t.Fatalf("it is no JSON: %s", got)
		}
		got = regexp.MustCompile(`"sha256:[0-9a-f]{64}"`).ReplaceAllString(got, `"X"`)
		got = regexp.MustCompile(`"capabilities":\{[^}]*\}`).ReplaceAllString(got, `"capabilities":C`)
		if got != test.want {
			t.Errorf("\n got %s\nwant %s", got, test.want)
		}
	}
}

// A flag promises something. Those that promise what is not there would make a
// harness rely on it.
func TestCapabilitiesPromiseWhatIsThere(t *testing.T) {
	h := ready(t, newServer(t, Options{Helper: "/helper"}), proto.Hello{})
	v, err := proto.Parse([]byte(strings.TrimPrefix(h.result("environment/info", `null`), "ok ")))
	if err != nil {
		t.Fatal(err)
	}
	flags := v.Get("capabilities")
	if flags.Len() < 14 {
		t.Errorf("%d flags", flags.Len())
	}
	for flag, method := range map[string]string{
		"fsWatchMissing": "fs/watchMissing", "capabilityDiscoveryV2": "capabilities/discoverV2",
		"environmentConfigRead": "environmentConfig/read", "fileWriteStreaming": "fs/writeBlock", "httpHeaderEnvVars": "http/request",
	} {
		_, there := methods[method]
		if got := flags.Get(flag).Kind == proto.True; got != there {
			t.Errorf("%s is %v, and %s is there: %v", flag, got, method, there)
		}
	}
}

// Without the helper nobody is to rely on what it does.
func TestCapabilitiesOfTheHelperNeedIt(t *testing.T) {
	h := ready(t, newServer(t, Options{}), proto.Hello{})
	info := h.result("environment/info", `null`)
	for _, flag := range []string{"httpHeaderEnvVars", "environmentConfigRead", "capabilityDiscoveryV2", "networkProxyLaunch", "networkProxyReviewDomains"} {
		if !strings.Contains(info, `"`+flag+`":false`) {
			t.Errorf("%s is true: %s", flag, info)
		}
	}
	h.call("http/request", `{"method":"GET","url":"http://127.0.0.1:1","requestId":"r"}`, "-32603 http/request failed: this executor has no helper program")
	h.call("environmentConfig/read", `{"cwd":"file:///","configPaths":[["x"]],"requirementsPaths":[]}`, "-32603 this executor has no helper program")
	h.call("capabilities/discoverV2", `{"cwd":"file:///"}`, "-32603 this executor has no helper program")
}

func TestInitializeTellsTheSameAsInfo(t *testing.T) {
	h := connect(t, newServer(t, Options{}), proto.Hello{})
	got := h.result("initialize", `{"clientName":"x"}`)
	h.send(`{"method":"initialized"}`)
	want := strings.TrimPrefix(h.result("environment/info", `{}`), "ok ")
	if !strings.HasSuffix(got, `,"environmentInfo":`+want+"}") {
		t.Errorf("initialize answers %s, info %s", got, want)
	}
}

func TestTheProviderIDIsStable(t *testing.T) {
	a, b := New(Options{Home: "/"}), New(Options{Home: "/"})
	if string(a.info()) != string(b.info()) {
		t.Error("two servers of one machine differ")
	}
	host, _ := os.Hostname()
	if host != "" && strings.Contains(string(a.info()), host) {
		t.Error("the host's name is told")
	}
}
