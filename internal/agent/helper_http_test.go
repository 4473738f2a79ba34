package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
)

func origin(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/text", func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		_, _ = io.WriteString(w, "hello")
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %q %s", r.Method, r.URL, r.Header["X-Env"], body)
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/waits", func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestHTTPRequests(t *testing.T) {
	o := origin(t)
	h := ready(t, helperServer(t, "real", "TOKEN=sesame"), proto.Hello{})
	h.call("http/request", `{"method":"GET","url":"`+o.URL+`/text","requestId":"r"}`,
		`ok {"status":200,"headers":[{"name":"content-length","value":"5"},{"name":"content-type","value":"text/plain; charset=utf-8"}],"bodyBase64":"aGVsbG8="}`)
	got := h.result("http/request", `{"method":"POST","url":"`+o.URL+`/echo?q","requestId":"r","headers":[{"name":"X-Env","value":"a ","valueEnvVar":"TOKEN"},{"name":"x-env","value":"b","valueEnvVar":null}],"bodyBase64":"Ym9keQ=="}`)
	if v, err := proto.Parse([]byte(strings.TrimPrefix(got, "ok "))); err != nil {
		t.Error(got)
	} else if body, _ := proto.DecodeBase64(v.Get("bodyBase64").Bytes()); string(body) != `POST /echo?q ["a sesame" "b"] body` {
		t.Errorf("the origin saw %s", body)
	}
	for _, test := range [][2]string{
		{`{}`, "-32602 missing field `method`"},
		{`{"method":"GET"}`, "-32602 missing field `url`"},
		{`{"method":"GET","url":"x"}`, "-32602 missing field `requestId`"},
		{`{"method":"GET","url":"x","requestId":"r","headers":null}`, "-32602 invalid type: null, expected a sequence"},
		{`{"method":"GET","url":"x","requestId":"r","headers":[{"name":"a"}]}`, "-32602 missing field `value`"},
		{`{"method":"GET","url":"x","requestId":"r","bodyBase64":"!"}`, "-32602 Invalid symbol 33, offset 0."},
		{`{"method":"GET","url":"x","requestId":"r","timeoutMs":-1}`, "-32602 invalid number"},
		{`{"method":"GET","url":"x","requestId":"r"}`, "-32602 http/request url is invalid: relative URL without a base"},
		{`{"method":"G T","url":"x","requestId":"r"}`, "-32602 http/request method is invalid: invalid HTTP method"},
		{`{"method":"GET","url":"http://127.0.0.1:1/","requestId":"r"}`, "-32603 http/request failed: error sending request for url (http://127.0.0.1:1/)"},
	} {
		h.call("http/request", test[0], test[1])
	}
}

// A request holds up what comes behind it until its headers are there; a stream
// goes on beside it.
func TestStreams(t *testing.T) {
	o := origin(t)
	h := ready(t, helperServer(t, "real"), proto.Hello{})
	if got := h.result("http/request", `{"method":"GET","url":"`+o.URL+`/waits","requestId":"w","streamResponse":true}`); !strings.HasPrefix(got, `ok {"status":200`) {
		t.Fatal(got)
	}
	h.call("http/request", `{"method":"GET","url":"`+o.URL+`/text","requestId":"w","streamResponse":true}`, "-32602 http/request streamResponse requestId `w` is already active")
	if got := h.result("http/request", `{"method":"GET","url":"`+o.URL+`/text","requestId":"w"}`); !strings.HasSuffix(got, `"bodyBase64":"aGVsbG8="}`) {
		t.Error(got)
	}
	for range 2 {
		if got := h.result("http/request", `{"method":"GET","url":"`+o.URL+`/text","requestId":"t","streamResponse":true}`); !strings.HasSuffix(got, `"bodyBase64":""}`) {
			t.Error(got)
		}
		for _, want := range []string{
			`{"method":"http/request/bodyDelta","params":{"requestId":"t","seq":1,"deltaBase64":"aGVsbG8=","done":false,"error":null}}`,
			`{"method":"http/request/bodyDelta","params":{"requestId":"t","seq":2,"deltaBase64":"","done":true,"error":null}}`,
		} {
			if got := h.note(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
}

// A harness that does not read holds up its origin, and nothing grows.
func TestASlowHarnessSlowsTheOrigin(t *testing.T) {
	o := origin(t)
	s := helperServer(t, "real")
	h := silent(t, s, proto.Hello{})
	h.send(`{"id":1,"method":"http/request","params":{"method":"GET","url":"%s/endless","requestId":"e","streamResponse":true}}`, o.URL)
	if f, err := h.conn.ReadFrame(); err != nil || !strings.HasPrefix(string(f.Body()), `{"id":1,"result"`) {
		t.Fatal(string(f), err)
	}
	time.Sleep(300 * time.Millisecond) // time to run away, if it can
	sess := h.session()
	out := sess.out.Load()
	out.mu.Lock()
	queued := len(out.notifications)
	out.mu.Unlock()
	if queued > 2*maxUnsent {
		t.Errorf("%d bytes are queued", queued)
	}
	var seq uint64
	for range 50 {
		f, err := h.conn.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		v, err := proto.Parse(f.Body())
		if n, _ := v.Get("params").Get("seq").Uint64(); err != nil || n != seq+1 {
			t.Fatalf("piece %d follows %d", n, seq)
		}
		seq++
	}
	h.leave()
	eventually(t, "end of the helper", func() bool { return len(children(t)) == 0 })
}

func TestConfigurationAndDiscovery(t *testing.T) {
	s := helperServer(t, "real")
	home := s.opts.Home
	for name, text := range map[string]string{
		".codex/config.toml":       "model = 'm'\nother = 1\n",
		".codex/skills/s/SKILL.md": "---\nname: one\ndescription: does\n---\n",
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h := ready(t, s, proto.Hello{})
	var config struct {
		UserHomeDir, CodexHomeDir string
		Config                    struct {
			Layers []struct{ Source, BaseDir, TOML string }
		}
	}
	got := h.result("environmentConfig/read", `{"cwd":"file:///","configPaths":[["model"]],"requirementsPaths":[["x"]]}`)
	if err := json.Unmarshal([]byte(strings.TrimPrefix(got, "ok ")), &config); err != nil {
		t.Fatal(got)
	}
	if l := config.Config.Layers; len(l) == 0 || l[len(l)-1].TOML != "model = \"m\"\n" || config.UserHomeDir != "file://"+home {
		t.Errorf("the configuration is %s", got)
	}
	got = h.result("capabilities/discoverV2", `{"cwd":"file:///nowhere","sandbox":null}`)
	if want := `"name":"one","description":"does"`; !strings.Contains(got, want) {
		t.Errorf("found are %s", got)
	}
	skill := `{"name":"one","description":"does","shortDescription":null,"path":"file://` + home + `/.codex/skills/s/SKILL.md","discoveryRoot":{"id":"codex-home-skills","path":"file://` + home + `/.codex/skills"},"dependencies":null,"policy":null}`
	for _, test := range [][3]string{
		{"environmentConfig/read", `{"cwd":"file:///","configPaths":[],"requirementsPaths":[]}`, "-32602 at least one config or requirements path is required"},
		{"environmentConfig/read", `{"cwd":"file:///","configPaths":[["a"],[]],"requirementsPaths":[]}`, "-32602 TOML paths must contain at least one key segment"},
		{"environmentConfig/read", `{"cwd":"file:///","configPaths":5,"requirementsPaths":[]}`, "-32602 invalid type: number, expected a sequence"},
		{"environmentConfig/read", `{"cwd":"file:///","configPaths":[[5]],"requirementsPaths":[]}`, "-32602 invalid type: number, expected a string"},
		{"environmentConfig/read", `{"cwd":"file:///C:/x","configPaths":[["a"]],"requirementsPaths":[]}`, "-32602 'file:///C:/x' is invalid on 'linux'"},
		{"capabilities/discoverV2", `{}`, "-32602 missing field `cwd`"},
		{"capabilities/discoverV2", `{"cwd":"file:///","sandbox":{"permissions":{"type":"disabled"},"windowsSandboxLevel":"disabled"}}`, "-32602 missing field `cwd`"},
		{"capabilities/discoverV2", `{"cwd":"file:///","sandbox":{"permissions":{"type":"external","network":"restricted"},"windowsSandboxLevel":"disabled","cwd":"file:///"}}`, `ok {"plugins":[],"skills":[` + skill + `],"warnings":[]}`},
		{"capabilities/discoverV2", `{"cwd":"file:///","sandbox":{"permissions":{"type":"managed","network":"restricted","file_system":{"type":"restricted","entries":[{"path":{"type":"special","value":{"kind":"minimal"}},"access":"read"}]}},"windowsSandboxLevel":"disabled","cwd":"file:///"}}`,
			`ok {"plugins":[],"skills":[],"warnings":[]}`},
	} {
		h.call(test[0], test[1], test[2])
	}
	if err := os.WriteFile(filepath.Join(home, ".codex/config.toml"), []byte("a = 1\nb =\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := h.result("environmentConfig/read", `{"cwd":"file:///","configPaths":[["model"]],"requirementsPaths":[]}`); !strings.HasPrefix(got, "-32603 failed to load executor-local config: "+home+"/.codex/config.toml:2:") {
		t.Error(got)
	}
	eventually(t, "end of the helpers", func() bool { return len(children(t)) == 0 })
}

// With several requests at once one that hangs holds up none.
func TestHTTPRequestsAtOnce(t *testing.T) {
	o := origin(t)
	h := ready(t, helperServer(t, "real"), proto.Hello{Concurrency: 3})
	h.send(`{"id":"slow","method":"http/request","params":{"method":"GET","url":"%s/waits","requestId":"r"}}`, o.URL)
	for i := range 20 {
		h.send(`{"id":%d,"method":"http/request","params":{"method":"GET","url":"%s/text","requestId":"r"}}`, i, o.URL)
	}
	for range 20 {
		if got := h.answer(); !strings.HasSuffix(got, `"bodyBase64":"aGVsbG8="}}`) {
			t.Error(got)
		}
	}
	if n := len(children(t)); n != 1 {
		t.Errorf("%d helpers", n)
	}
}

func TestStreamsAreLimited(t *testing.T) {
	o := origin(t)
	h := ready(t, helperServer(t, "real"), proto.Hello{})
	for i := range maxStreams + 1 {
		got := h.result("http/request", fmt.Sprintf(`{"method":"GET","url":"%s/waits","requestId":"%d","streamResponse":true}`, o.URL, i))
		if i < maxStreams && !strings.HasPrefix(got, "ok ") || i == maxStreams && got != fmt.Sprintf("-32603 http/request failed: %d response streams are open on this connection, which is the limit", maxStreams) {
			t.Fatalf("stream %d: %s", i, got)
		}
	}
}
