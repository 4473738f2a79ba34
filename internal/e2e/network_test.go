package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/control"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

// newInternet is one with two names, and what a configuration needs to use it.
func newInternet(t testing.TB) (n *testnet.Internet, config string) {
	t.Helper()
	n = testnet.New(t)
	n.DNS.Set("web.example", time.Minute, testnet.Web.String())
	n.DNS.Set("other.example", time.Minute, testnet.Other.String())
	return n, fmt.Sprintf("[network]\nresolvers = [%q]\n", testnet.Resolver.Addr())
}

// serveIn starts the daemon on the host of an internet.
func (r *root) serveIn(n *testnet.Internet, args ...string) *server {
	r.t.Helper()
	s := launch(r.t, n.Host.Start, append([]string{"--config", r.config}, args...)...)
	s.url = "ws://" + n.Host.Forward(r.t, strings.TrimPrefix(s.url, "ws://"))
	return s
}

// policy runs "env policy default" and returns what it prints.
func (r *root) policy(code int, args ...string) string {
	r.t.Helper()
	out, errs, got := cli(r.t, "", append([]string{"--config", r.config, "env", "policy", "default"}, args...)...)
	if got != code {
		r.t.Errorf("env policy default %q: exit %d: %s%s", args, got, out, errs)
	}
	return out + errs
}

// file writes a file that only root can read.
func (r *root) file(name, text string) string {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

func expect(t testing.TB, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s: %q, and there is no %q", what, got, want)
	}
}

const profile = "[profile.default]\nimage = \"test/busybox:1\"\n"

func TestThePolicyOfAProfileIsInForce(t *testing.T) {
	n, config := newInternet(t)
	r := newRoot(t, config+profile+"[profile.default.network]\nmode = \"rules\"\n[[profile.default.network.rule]]\nallow = [\"web.example\"]\n")
	expect(t, "without a server", r.policy(1), "no exec-server is running")
	s := r.serveIn(n)
	expect(t, "before its start", r.policy(0), "default (not running")
	expect(t, "before its start", r.policy(0), "rule 1       allow web.example\n")
	expect(t, "a change before its start", r.policy(1, "set", "--mode", "open"), "default is not running")
	expect(t, "explained before its start", r.policy(0, "explain", "web.example:443"), "allowed by rule 1")
	h := s.connect("/", "")
	for script, want := range map[string]string{
		"visit http://web.example/":                    "ok",
		"visit http://web.example:8080/":               "refused",
		"visit http://other.example/":                  "no such host",
		"visit http://" + testnet.Other.String() + "/": "refused",
		"visit http://169.254.169.254/":                "refused",
		"visit http://" + testnet.Host.String() + "/":  "refused",
		"grep nameserver /etc/resolv.conf":             "192.0.0.1",
		"ls /sys/class/net":                            "lo",
	} {
		expect(t, script, h.sh(script), want)
	}
	if n.DNS.Count("other.example") > 0 || n.DNS.Count("web.example") == 0 {
		t.Errorf("the name server was asked %v", n.DNS.Queries())
	}
	shown := r.policy(0)
	for _, want := range []string{"default (running)", "mode         rules", "last denied  lookup other.example", "by metadata"} {
		expect(t, "the policy", shown, want)
	}
	expect(t, "the log", s.logs.String(), `"environment":"default"`)
	expect(t, "the log", s.logs.String(), "other.example")
	var all control.Policy
	if err := json.Unmarshal([]byte(r.policy(0, "--json")), &all); err != nil || !all.Running || all.Stats == nil || all.Stats.Total.Allowed == 0 {
		t.Errorf("as JSON it is %+v, %v", all, err)
	}
}

func TestWithoutAPolicyThereIsNoWayOut(t *testing.T) {
	n, config := newInternet(t)
	r := newRoot(t, config)
	h := r.serveIn(n).connect("/", "")
	for _, url := range []string{"http://web.example/", "http://" + testnet.Web.String() + "/"} {
		expect(t, url, h.sh("visit "+url), "network is unreachable")
	}
	if q := n.DNS.Queries(); len(q) > 0 {
		t.Errorf("the name server was asked %v", q)
	}
	expect(t, "the policy", r.policy(0), "mode         none\n")
}

// One command may have another mode than its profile.
func TestTheNetworkOfOneCommand(t *testing.T) {
	n, config := newInternet(t)
	r := newRoot(t, config+profile+"[profile.default.network]\nmode = \"rules\"\n[[profile.default.network.rule]]\ndeny = [\"other.example\"]\n")
	r.serveIn(n)
	run := func(mode, host string) string {
		t.Helper()
		out, errs, _ := cli(t, "", "--config", r.config, "run", "--network", mode, "--", "visit", "http://"+host+"/")
		return out + errs
	}
	expect(t, "rules", run("rules", "web.example"), "no such host")
	expect(t, "open", run("open", "web.example"), "}\nok\n")
	expect(t, "open, and a rule", run("open", "other.example"), "no such host")
	expect(t, "none", run("none", "web.example"), "network is unreachable")
	expect(t, "another", run("all", "web.example"), "must be one of")
	_, errs, code := cli(t, "", "--root", r.dir, "--runtime", "host", "run", "--network", "none", "--", "true")
	if code != 1 {
		t.Errorf("with --runtime host the exit is %d", code)
	}
	expect(t, "the host", errs, "there is no network policy with --runtime host")
}

// What is changed counts at once, for a daemon that comes later, and for no other
// container.
func TestAPolicyIsChangedWhileItCounts(t *testing.T) {
	n, config := newInternet(t)
	r := newRoot(t, config)
	s := r.serveIn(n)
	h := s.connect("/", "")
	try := func(h *harness, web, other bool) {
		t.Helper()
		for host, want := range map[string]bool{"web": web, "other": other} {
			if got := h.sh("visit http://" + host + ".example/"); strings.HasSuffix(got, "}\nok") != want {
				t.Errorf("%s: %q", host, got)
			}
		}
	}
	try(h, false, false)
	expect(t, "set", r.policy(0, "set", "--mode", "rules", "--allow", "*.example:80", "--deny", "other.example"), "rule 2       deny other.example\n")
	try(h, true, false)
	for says, args := range map[string][]string{
		"rule 3: protocols":                    {"--allow", "x/udp"},
		"there is no rule 7":                   {"--remove", "7"},
		"intercept can only be set in the pro": {"--from", r.file("policy", `{"mode":"rules","intercept":true}`)},
	} {
		got := r.policy(1, append([]string{"set"}, args...)...)
		expect(t, strings.Join(args, " "), got, "stays as it is: ")
		expect(t, strings.Join(args, " "), got, says)
	}
	try(h, true, false)
	expect(t, "explain", r.policy(0, "explain", "web.example:80"), "rule 1")
	expect(t, "explain --json", r.policy(0, "explain", "web.example:80", "--json"), "\n  \"decision\": \"allowed\",\n  \"reason\": \"rule\",\n  \"rule\": 1,\n")
	expect(t, "no question", r.policy(2, "explain", "web.example"), "write HOST:PORT")
	expect(t, "a limit", r.policy(0, "set", "--volume", "1GiB"), "limit        1GiB in all, ")
	expect(t, "a rule that does nothing", r.policy(0, "set", "--deny", "*.example"), "warning: rule 3 does not deny what rule 1 allows")
	expect(t, "what is printed, and read", r.policy(0, "set", "--remove", "3", "--from", r.file("printed", r.policy(0, "--json"))), "rule 2       deny other.example\n")
	expect(t, "explain", r.policy(0, "explain", "other.example:80"), "rule 2")
	session := h.session
	s.stop(syscall.SIGKILL)
	s = r.serveIn(n)
	h = s.connect("/", session)
	try(h, true, false)
	expect(t, "after a crash", r.policy(0), "rule 2       deny other.example\n")
	expect(t, "remove", r.policy(0, "set", "--remove", "2"), "rule 1       allow *.example:80\n")
	try(h, true, true)
	expect(t, "reset", r.policy(0, "set", "--reset"), "mode         none\n")
	try(h, false, false)
	r.policy(0, "set", "--mode", "open")
	s.stop(syscall.SIGTERM)
	h = r.serveIn(n).connect("/", "")
	try(h, false, false)
}

// An open connection ends by an edit only if that says so.
func TestOpenConnectionsEndIfAsked(t *testing.T) {
	n, config := newInternet(t)
	r := newRoot(t, config+profile+"[profile.default.network]\nmode = \"open\"\n")
	h := r.serveIn(n).connect("/", "")
	id, p := h.start("/bin/visit", "http://web.example/events/x")
	events := n.Web.Events("x")
	events <- "first"
	wait(t, p.prints, "the first event")
	r.policy(0, "set", "--mode", "rules")
	expect(t, "a new connection", h.sh("visit http://web.example/"), "no such host")
	select {
	case <-p.exited:
		t.Errorf("%s ended", id)
	default:
	}
	r.policy(0, "set", "--deny", "*", "--close")
	wait(t, p.exited, "the end of an open connection")
	close(events)
}

// A request of the helper is one of the sandbox.
func TestHTTPRequestsFollowThePolicy(t *testing.T) {
	n, config := newInternet(t)
	r := newRoot(t, config+profile+"[profile.default.network]\nmode = \"rules\"\n[[profile.default.network.rule]]\nallow = [\"web.example\"]\n")
	h := r.serveIn(n).connect("/", "")
	request := func(url string) (uint64, error) {
		got, err := h.call("http/request", map[string]any{"method": "GET", "url": url, "requestId": url, "timeoutMs": 20000})
		status, _ := got.Get("status").Uint64()
		return status, err
	}
	if status, err := request("http://web.example/x"); err != nil || status != 200 {
		t.Errorf("what is allowed: %d, %v", status, err)
	}
	for _, url := range []string{"http://other.example/x", "http://" + testnet.Web.String() + ":8080/", "http://" + testnet.Host.String() + ":80/"} {
		if status, err := request(url); err == nil {
			t.Errorf("%s: %d", url, status)
		}
	}
	for _, seen := range n.Web.Requests() {
		if seen.Host != "web.example" {
			t.Errorf("a server saw %+v", seen)
		}
	}
}

// The image's programs trust the environment's CA, and nobody in there has its key.
func TestTheCAOfAnEnvironment(t *testing.T) {
	n, config := newInternet(t)
	r := newRoot(t, config+profile+"env = { PIP_CERT = \"/mine\" }\n[profile.default.network]\nmode = \"rules\"\nintercept = true\n")
	h := r.serveIn(n).connect("/", "")
	ca := h.sh("cat /run/exec-server/ca.pem")
	expect(t, "the certificate", ca, "-----BEGIN CERTIFICATE-----")
	for _, file := range []string{"/etc/ssl/certs/ca-certificates.crt", "$NODE_EXTRA_CA_CERTS"} {
		expect(t, file, h.sh("cat "+file), ca)
	}
	// The image has no bundle, so that there is none to add to and to name.
	expect(t, "the bundle", h.sh("ls /run/exec-server; echo \"file: $SSL_CERT_FILE.\""), "\nfile: .")
	expect(t, "a variable of the profile's", h.sh("echo $PIP_CERT"), "/mine")
	expect(t, "writing", h.sh("echo x 2>&1 > /run/exec-server/ca.pem"), "Read-only")
	if got := h.sh("grep -rl 'PRIVATE KEY' /run /etc /workspace 2>/dev/null"); got != "" {
		t.Errorf("a key is in %s", got)
	}
}

// A secret is added to HTTPS on the way, and nowhere in the sandbox.
func TestACredentialIsAddedOutsideOfTheSandbox(t *testing.T) {
	n, config := newInternet(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("open-sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRoot(t, config+profile+fmt.Sprintf("[profile.default.network]\nmode = \"rules\"\nintercept = true\n"+
		"[[profile.default.network.rule]]\nallow = [\"web.example\"]\ncredential = { secret_file = %q }\n"+
		"[[profile.default.network.rule]]\nallow = [\"other.example\"]\n", secret))
	t.Setenv("SSL_CERT_FILE", r.file("world.pem", string(n.CA.PEM())))
	h := r.serveIn(n).connect("/", "")
	expect(t, "with a credential", h.sh("visit https://web.example/x"), `"Authorization":["Bearer open-sesame"]`)
	expect(t, "without one", h.sh("visit https://other.example/x"), "unknown authority") // nothing is intercepted there
	if got := h.sh("cat /proc/*/environ /run/exec-server/*.pem /etc/* 2>/dev/null | grep sesame"); got != "" {
		t.Errorf("in the sandbox there is %q", got)
	}
	if got := r.policy(0, "--json"); strings.Contains(got, "sesame") || !strings.Contains(got, secret) {
		t.Errorf("the policy is shown as %s", got)
	}
}

func TestCountersForPrometheus(t *testing.T) {
	n, config := newInternet(t)
	r := newRoot(t, config+"[metrics]\nurl = \"http://127.0.0.1:9464\"\n"+profile+"[profile.default.network]\nmode = \"rules\"\n[[profile.default.network.rule]]\nallow = [\"web.example\"]\n")
	s := r.serveIn(n)
	h := s.connect("/", "")
	expect(t, "web", h.sh("visit http://web.example/"), "ok")
	expect(t, "metadata", h.sh("visit http://169.254.169.254/"), "refused")
	answer, err := http.Get("http://" + n.Host.Forward(t, "127.0.0.1:9464") + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "the counters", string(text), `exec_server_network_denied_total{environment="default",reason="metadata"} 1`)
	expect(t, "the counters", string(text), `exec_server_network_lookups_total{environment="default"} `)
}
