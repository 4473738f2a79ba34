package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/remote/remotetest"
	"github.com/exec-server/exec-server/internal/testroot"
)

// exec runs a command of the program to its end, and returns what it prints.
func exec(t *testing.T, status int, stdin string, args ...string) (out, err string) {
	t.Helper()
	p := start(t, args...)
	p.write(stdin)
	_ = p.in.Close()
	p.ends(status)
	return p.out.String(), p.err.String()
}

// eventually waits until the list of environments is as a pattern says.
func eventually(t *testing.T, root, pattern string) {
	t.Helper()
	re, got := regexp.MustCompile(`(?s)^NAME +STATE +TRANSPORT +CONNECTED +RECONNECTS +SESSIONS +PROCESSES +LAST ERROR\n`+pattern+`$`), ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		p := start(t, "env", "ls", "--root", root)
		<-p.ended // with an error while the server is not there yet
		if got = p.out.String(); re.MatchString(got) {
			return
		}
	}
	t.Fatalf("the list is\n%s, and not %s", got, pattern)
}

// Environments of a running server, in the configuration and beside it, until the
// next server.
func TestEnvironmentsOfARunningServer(t *testing.T) {
	testroot.Need(t) // for the control socket
	bare(t)
	peer := remotetest.New(t, remotetest.Options{})
	root, dir := t.TempDir(), t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := file("key", "sk-file")
	config := file("config.toml", "version = 1\n[listen]\nurl = \"none\"\n[remote]\nurl = \""+peer.URL+"\"\n[environment.one]\nkey_file = \""+key+"\"\n")
	peer.Set("bad", func(f *remotetest.Faults) { f.Register = remotetest.Plan{Status: 404, Message: "no such\tenvironment"} })
	serve := func() *program { return start(t, "--config", config, "--root", root, "--runtime", "host") }
	env := func(status int, says string, args ...string) {
		t.Helper()
		if _, err := exec(t, status, "sk-pipe\n", append([]string{"env", "--root", root}, args...)...); !strings.Contains(err, says) || err != "" && says == "" {
			t.Errorf("%s says %q; expected %q", args, err, says)
		}
	}
	env(1, "no exec-server is running for root "+root, "ls")
	p := serve()
	connected := ` +connected +noise +\d+s +0 +`
	eventually(t, root, `one`+connected+`0 +0 +\n`)
	serves(t, peer, "one")
	eventually(t, root, `one`+connected+`1 +0 +\n`)
	env(0, "", "add", "two", "--key-file", key, "--environment-id", "second")
	env(0, "not kept", "add", "three", "--key-stdin")
	env(0, "", "add", "bad", "--key-command", "cat "+key)
	env(1, "already", "add", "one", "--key-file", key)
	env(1, "already", "add", "four", "--key-file", key, "--environment-id", "one")
	env(1, "give --key-file", "add", "five")
	env(1, "--environment-id: ", "add", "five", "--key-file", key, "--environment-id", "/")
	env(1, "no [profile.none]", "add", "six", "--key-file", key, "--profile", "none")
	env(2, "can't be used together", "add", "seven", "--key-file", key, "--key-stdin")
	env(0, "not there yet", "add", "eight", "--key-file", filepath.Join(dir, "none"))
	env(0, "", "rm", "eight")
	env(0, "warning: the key file "+dir+" is a directory", "add", "nine", "--key-file", dir)
	env(0, "", "rm", "nine")
	env(1, "no such environment", "rm", "nobody")
	failed := `bad +failed +noise +- +0 +0 +0 +environment registry request failed \(404 Not Found\): no such environment \(asked at 127\.0\.0\.1:\d+\) \(\d+s ago\)\n`
	eventually(t, root, failed+`one`+connected+`1 +0 +\nthree`+connected+`0 +0 +\ntwo`+connected+`0 +0 +\n`)
	serves(t, peer, "second")
	for _, c := range peer.Calls("three", remotetest.Register) {
		if got := c.Header.Get("Authorization"); got != "Bearer sk-pipe" {
			t.Errorf("three registers with %s", got)
		}
	}
	env(0, "the configuration has it still", "rm", "one")
	env(0, "the next start takes that one", "add", "one", "--key-file", key)
	if out, err := exec(t, 0, "", "env", "--root", root, "rm", "one"); out != "removed one\n" || !strings.Contains(err, "exec-server: warning: ") {
		t.Errorf("env rm prints %q, and says %q", out, err)
	}
	if _, err := exec(t, 0, "", "env", "--root", root, "ls"); !strings.Contains(err, root) {
		t.Errorf("env ls says %q", err)
	}
	p.stop()
	p.ends(0)
	if got := p.err.String(); strings.Count(got, "exec-server serves") != 1 || !strings.Contains(got, `"listen":"none","environments":1`) {
		t.Errorf("the log is %s", got)
	}
	state, err := os.ReadFile(filepath.Join(root, "environments.host.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(state)+p.err.String(), "sk-") {
		t.Errorf("there is a key in the state or the log:\n%s\n%s", state, p.err)
	}
	p = serve()
	eventually(t, root, failed+`one`+connected+`0 +0 +\ntwo`+connected+`0 +0 +\n`)
	p.stop()
	p.ends(0)
}

func TestTheListOfEnvironments(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	n := func(i int) *int { return &i }
	var out strings.Builder
	if err := table(&out, []control.Environment{
		{Name: "a", State: "connected", Transport: "noise", ConnectedSince: ago(90 * time.Second), Reconnects: 12, Sessions: n(3), Processes: n(4), LastError: "x\x1b[31m\ny", LastErrorAt: ago(50 * time.Hour)},
		{Name: "b", State: "running", Sessions: n(0)},
		{Name: "c", State: "failed", Transport: "direct", LastError: strings.Repeat("é", 300)},
	}, now); err != nil {
		t.Fatal(err)
	}
	want := "NAME  STATE      TRANSPORT  CONNECTED  RECONNECTS  SESSIONS  PROCESSES  LAST ERROR\n" +
		"a     connected  noise      1m         12          3         4          x [31m y (2d ago)\n" +
		"b     running    -          -          -           0         ?          \n" +
		"c     failed     direct     -          0           ?         ?          " + strings.Repeat("é", mostTrouble) + "…\n"
	if out.String() != want {
		t.Errorf("the table is\n%s; expected\n%s", out.String(), want)
	}
}

func TestAges(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 59 * time.Second: "59s", 60 * time.Second: "1m", 3599 * time.Second: "59m", time.Hour: "1h", 47 * time.Hour: "47h", 48 * time.Hour: "2d"} {
		if got := age(d); got != want {
			t.Errorf("%s is %s; expected %s", d, got, want)
		}
	}
}
