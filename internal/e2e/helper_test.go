package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

// look prints what a user may know of the helpers that run.
const look = `for p in /proc/[0-9]*; do read c 2>/dev/null < $p/comm; test "$c" = exec-helper || continue
while read k v; do case $k in Uid:|Gid:|Groups:|CapEff:) echo $k $v;; esac; done < $p/status; cat $p/oom_score_adj; cat $p/environ 2>/dev/null || echo hidden; done`

// The helper has the rights of the image's user, cannot be looked into, and sees
// the container's network and files, not the host's.
func TestTheHelperInAContainer(t *testing.T) {
	r := newRoot(t, "[profile.default]\nimage = \"test/user:1\"\n")
	r.importImage(busyboxTar, "test/user:1", "--user", "worker", "-e", "PATH=/bin", "-e", "HOME=/workspace", "-e", "TOKEN=sesame")
	s := r.serve()
	h := s.connect("/", "")
	info, err := h.call("environment/info", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"httpHeaderEnvVars", "environmentConfigRead", "capabilityDiscoveryV2"} {
		if info.Get("capabilities").Get(flag).Kind != proto.True {
			t.Errorf("%s is not true", flag)
		}
	}
	h.sh("mkdir -p /workspace/.codex/skills/s; echo 'model = \"m\"' > /workspace/.codex/config.toml; printf -- '---\\nname: n\\ndescription: d\\n---\\n' > /workspace/.codex/skills/s/SKILL.md")
	got, err := h.call("environmentConfig/read", map[string]any{"cwd": "file:///workspace", "configPaths": [][]string{{"model"}}, "requirementsPaths": [][]string{}})
	layers := got.Get("config").Get("layers")
	if err != nil || layers.Len() != 1 || layers.At(0).Get("toml").Str() != "model = \"m\"\n" || got.Get("hostname").Str() != "default" {
		t.Errorf("the configuration: %v, %d layers", err, layers.Len())
	}
	got, err = h.call("capabilities/discoverV2", map[string]any{"cwd": "file:///"})
	if err != nil || got.Get("skills").Len() != 1 || got.Get("skills").At(0).Get("name").Str() != "n" {
		t.Errorf("the skills: %v, %d", err, got.Get("skills").Len())
	}
	if left := h.sh(look); left != "" {
		t.Errorf("helpers are left: %q", left)
	}

	// An origin on the container's own loopback, whose answer does not end.
	h.start("/bin/sh", "-c", `{ printf 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin'; sleep 1000; } | nc -l -p 8000 > /tmp/seen`)
	request := map[string]any{
		"method": "GET", "url": "http://127.0.0.1:8000/x", "requestId": "r", "streamResponse": true,
		"headers": []map[string]string{{"name": "X-Token", "value": "", "valueEnvVar": "TOKEN"}},
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) { // nc takes a moment to listen
		if got, err = h.call("http/request", request); err == nil {
			break
		}
		if time.Since(begun) > 30*time.Second {
			t.Fatal(err)
		}
	}
	if status, _ := got.Get("status").Uint64(); status != 200 {
		t.Errorf("status %d", status)
	}
	if seen := h.sh("cat /tmp/seen"); !strings.Contains(seen, "\r\nx-token: sesame\r\n") {
		t.Errorf("the origin saw %q", seen)
	}
	want := "Uid: 1234 1234 1234 1234\nGid: 1234 1234 1234 1234\nGroups: 77\nCapEff: 0000000000000000\n500\nhidden"
	if got := h.sh(look); got != want {
		t.Errorf("a helper is seen as %q, want %q", got, want)
	}
	if adj := h.sh("cat /proc/1/oom_score_adj"); adj != "0" {
		t.Errorf("the agent keeps its helper's oom_score_adj: %q", adj)
	}
	other := s.connect("/", "")
	_ = h.c.Close()
	for begun := time.Now(); other.sh(look) != ""; time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("the helper outlives its connection")
		}
	}
}

// A harness cannot use the helper to reach what the daemon's host reaches.
func TestTheHelperHasTheContainersNetworkOnly(t *testing.T) {
	r := newRoot(t, "")
	s := r.serve()
	h := s.connect("/", "")
	o := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the host is reached") }))
	defer o.Close()
	if _, err := h.call("http/request", map[string]any{"method": "GET", "url": o.URL, "requestId": "r", "timeoutMs": 5000}); err == nil {
		t.Error("it is answered")
	}
	if conn, err := net.DialTimeout("tcp", o.Listener.Addr().String(), 5*time.Second); err != nil {
		t.Error(err) // the origin itself is fine
	} else {
		_ = conn.Close()
	}
}

func TestTheHelperOfTheHost(t *testing.T) {
	o := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("hello")) }))
	defer o.Close()
	h := serve(t, "--runtime", "host", "--listen", "ws://127.0.0.1:0").connect("/", "")
	got, err := h.call("http/request", map[string]any{"method": "GET", "url": o.URL, "requestId": "r"})
	if err != nil || got.Get("bodyBase64").Str() != "aGVsbG8=" {
		t.Errorf("%q, %v", got.Get("bodyBase64").Str(), err)
	}
}
