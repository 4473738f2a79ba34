package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

// readOnly is a profile without the network; noProfile is one that takes nothing.
const (
	readOnly = `,"sandbox":{"permissions":{"type":"managed","file_system":{"type":"restricted","entries":[{"path":{"type":"special","value":{"kind":"root"}},"access":"read"}]},` +
		`"network":"restricted"},"windowsSandboxLevel":"disabled"}`
	noProfile = `,"sandbox":{"permissions":{"type":"disabled"},"windowsSandboxLevel":"disabled"}`
	enforced  = `,"enforceManagedNetwork":true`
)

// confined runs a Python script under a profile and returns what it printed, and
// the decisions that came before its end.
func (h *harness) confined(script, env, more string) (out string, decisions []string) {
	h.t.Helper()
	return h.python(script, env, more, "linuxSeccomp")
}

// unconfined is confined without a profile.
func (h *harness) unconfined(script, env, more string) (out string) {
	h.t.Helper()
	out, _ = h.python(script, env, more, "none")
	return out
}

func (h *harness) python(script, env, more, kind string) (out string, decisions []string) {
	h.t.Helper()
	argv, err := json.Marshal([]string{"/usr/bin/env", "python3", "-c", script})
	if err != nil {
		h.t.Fatal(err)
	}
	h.call("process/start", `{"processId":"p","argv":`+string(argv)+`,"cwd":"file:///","tty":false,"env":{"PATH":"/usr/local/bin:/usr/bin:/bin"`+env+`}`+more+`}`,
		`ok {"processId":"p","sandboxType":"`+kind+`"}`)
	for {
		note := h.note()
		m, err := proto.ParseMessage([]byte(note))
		if err != nil {
			h.t.Fatal(err)
		}
		switch m.Method {
		case "process/output":
			data, _ := proto.DecodeBase64(m.Params.Get("chunk").Bytes())
			out += string(data)
		case "process/exited":
			out += "exit " + string(m.Params.Get("exitCode").Raw())
		case "network/policyDecision":
			decisions = append(decisions, changing.ReplaceAllString(note, "_"))
		case "process/closed":
			return out, decisions
		}
	}
}

const tryAll = `
import os, socket
def at(name): return ("127.0.0.1", int(os.environ[name].rsplit(":", 1)[1].rstrip("/")))
def t(name, f):
    try: print(name, f())
    except OSError as e: print(name, e.strerror)
def ask():
    s = socket.create_connection(at("HTTP_PROXY"))
    s.sendall(b"GET http://x.example/ HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n")
    return s.makefile("rb").readline().decode().strip()
t("proxy", ask)
t("outer", lambda: socket.create_connection(at("OUTER")) and "open")
`

func TestAConfinedCommandReachesItsProxyAlone(t *testing.T) {
	testroot.Need(t)
	outer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = outer.Close() }()
	env := `,"OUTER":"x:` + portOf(outer) + `"`
	var count proxies
	s := newServer(t, Options{})
	count.serve(t, s)
	for i, c := range []struct{ more, want string }{
		{readOnly + enforced, "proxy HTTP/1.1 403 Forbidden\nouter Connection refused\nexit 0"},
		{noProfile + enforced, "proxy HTTP/1.1 403 Forbidden\nouter Connection refused\nexit 0"},
		{readOnly, "proxy Operation not permitted\nouter Operation not permitted\nexit 0"},
		{noProfile, "proxy HTTP/1.1 403 Forbidden\nouter open\nexit 0"},
	} {
		h := ready(t, s, proto.Hello{})
		out, decisions := h.confined(tryAll, env, c.more+proxyMember("", ""))
		if out != c.want {
			t.Errorf("%s: %s", c.more, out)
		}
		want := []string{wantDecision("p", "deny", "baseline_policy", "not_allowed", "x.example")}
		if !strings.Contains(c.want, "403") {
			want = nil
		}
		if fmt.Sprint(decisions) != fmt.Sprint(want) {
			t.Errorf("%s: %s", c.more, decisions)
		}
		count.wait(t, int32(i+1))
	}
}

func TestAConfinedCommandReachesTheProxyOfItsEnvironment(t *testing.T) {
	testroot.Need(t)
	outer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = outer.Close() }()
	go func() {
		for {
			conn, err := outer.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "from outside\n")
			_ = conn.Close()
		}
	}()
	var count proxies
	s := newServer(t, Options{})
	count.serve(t, s)
	h := ready(t, s, proto.Hello{})
	env := fmt.Sprintf(`,"OUTER":"x:%s","HTTP_PROXY":"http://localhost:%[1]s/"`, portOf(outer))
	if out, _ := h.confined(tryAll, env, readOnly+enforced); out != "proxy from outside\nouter Connection refused\nexit 0" {
		t.Errorf("got %s", out)
	}
	count.wait(t, 1)
}

func TestAConfinedCommandWithoutAWayOut(t *testing.T) {
	testroot.Need(t)
	s := newServer(t, Options{})
	for _, profile := range []string{readOnly, noProfile} {
		h := ready(t, s, proto.Hello{})
		if out, _ := h.confined("print(1)", "", profile+enforced); out != "exec-server: cannot enforce the sandbox: managed proxy mode requires proxy environment variables\nexit 101" {
			t.Errorf("got %s", out)
		}
	}
	h := ready(t, s, proto.Hello{})
	h.call("process/start", h.startParams("p", "true", readOnly+enforced+proxyMember("", "")),
		"-32603 network proxy: this executor has no helper program [spawnFailed]")
}

func portOf(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
