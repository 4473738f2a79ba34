package agent

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/proto"
	"github.com/exec-server/exec-server/internal/testroot"
)

const credential = "abc01234567890123456789"

// maskingFor is a proxy that masks what is in A, for an origin on this machine.
func maskingFor(origin string) string {
	return proxyMember(`,"domains":{"127.0.0.1":"allow"},"credentialMasking":true,"credentialProviders":{"my":{"env":["A"],"patterns":["abc[0-9]{20}"],`+
		`"url_prefixes":["`+origin+`/v1"],"auth":["bearer"]}}`, "")
}

// useCredential says what the command has, and what an origin gets that it sends
// it to.
const useCredential = `
import os, urllib.request
a, file = os.environ["A"], os.environ["SSL_CERT_FILE"]
print(a == "` + credential + `", len(a), a in os.environ["B"], "` + credential + `" in os.environ["B"], os.path.exists("/nothing"))
print(open(file).read().count("BEGIN CERTIFICATE") > 0, os.access(file, os.W_OK))
for path in "/v1", "/v2":
    r = urllib.request.Request(os.environ["ORIGIN"] + path, headers={"Authorization": "Bearer " + a})
    print(urllib.request.urlopen(r).read().decode() == a)
print(file)
`

func TestACommandsCredentialsAreMasked(t *testing.T) {
	testroot.Need(t)
	var mu sync.Mutex // guards got
	var got []string
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprint(r.URL.Path, " ", value == credential))
		_, _ = fmt.Fprint(w, value)
	}))
	defer origin.Close()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var count proxies
	s := newServer(t, Options{Helper: "/proc/self/exe", Dir: dir, Env: []string{helperEnv + "=real", "PATH=" + os.Getenv("PATH")}, Cwd: "/", Home: t.TempDir()})
	count.serve(t, s)
	env := `,"A":"` + credential + `","B":"x ` + credential + `","ORIGIN":"` + origin.URL + `"`
	for i, more := range []string{"", noProfile, readOnly + enforced, narrow + enforced} {
		mu.Lock()
		got = nil
		mu.Unlock()
		h := ready(t, s, proto.Hello{})
		sandboxed := more != ""
		var out string
		if sandboxed {
			out, _ = h.confined(useCredential, env, more+maskingFor(origin.URL))
		} else {
			out = h.unconfined(useCredential, env, maskingFor(origin.URL))
		}
		head, file, _ := strings.Cut(strings.TrimSuffix(out, "\nexit 0"), dir)
		// Root may write what the mode does not let it, where nothing confines it.
		head = strings.Replace(head, "True True\n", "True False\n", 1)
		if head != "False 23 True False False\nTrue False\nFalse\nTrue\n" || file == "" {
			t.Errorf("%d: %s", i, out)
		}
		mu.Lock()
		if fmt.Sprint(got) != "[/v1 true /v2 false]" {
			t.Errorf("%d: the origin got %s", i, got)
		}
		mu.Unlock()
		count.wait(t, int32(i+1))
		h.leave()
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s is left", left)
		}
	}
}

// narrow is a profile that shows little more than what programs need.
const narrow = `,"sandbox":{"permissions":{"type":"managed","file_system":{"type":"restricted","entries":[` +
	`{"path":{"type":"path","path":"file:///usr"},"access":"read"},{"path":{"type":"path","path":"file:///root/.pyenv"},"access":"read"},` +
	`{"path":{"type":"path","path":"file:///lib"},"access":"read"},{"path":{"type":"path","path":"file:///lib64"},"access":"read"},` +
	`{"path":{"type":"path","path":"file:///bin"},"access":"read"}]},"network":"restricted"},"windowsSandboxLevel":"disabled"}`

func TestACommandWhoseCredentialsCannotBeMaskedDoesNotStart(t *testing.T) {
	for _, c := range []struct{ mode, providers, env, want string }{
		{"real", `{"x":{}}`, "", "-32602 invalid network proxy config: credential provider `x` has no environment keys"},
		{"real", `{}`, `,"GITHUB_TOKEN":"a\nb"`, "-32602 credential masking: a credential has a character that no header can carry"},
		{"exits", `{}`, "", "-32603 credential masking failed: the helper program ended"},
		{`{"id":ID,"result":{"env":{"OTHER":"x"},"bundle":"","proxy":null}}`, `{}`, "", "-32603 credential masking failed: the helper program ended"},
		{`{"id":ID,"result":{"env":{"PATH":1},"bundle":"","proxy":null}}`, `{}`, "", "-32603 credential masking failed: the helper program ended"},
		{`{"id":ID,"result":{"env":{},"bundle":"","proxy":1}}`, `{}`, "", "-32603 credential masking failed: the helper program ended"},
		{`{"id":ID,"result":{"env":{},"proxy":{}}}`, `{}`, "", "-32603 credential masking failed: the helper program ended"},
	} {
		var count proxies
		s := helperServer(t, c.mode)
		count.serve(t, s)
		h := ready(t, s, proto.Hello{})
		params := withEnv(h.startParams("p", "true", proxyMember(`,"credentialMasking":true,"credentialProviders":`+c.providers, "")), c.env)
		if got := h.result("process/start", params); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.mode, got, c.want)
		}
		count.wait(t, 0)
	}
}

// A directory that cannot be written starts no command either.
func TestNoPlaceForCertificates(t *testing.T) {
	s := newServer(t, Options{Helper: "/proc/self/exe", Dir: "/nowhere", Env: []string{helperEnv + "=real"}, Cwd: "/", Home: "/"})
	h := ready(t, s, proto.Hello{})
	params := withEnv(h.startParams("p", "true", proxyMember(`,"credentialMasking":true`, "")), `,"GITHUB_TOKEN":"x"`)
	if got := h.result("process/start", params); !strings.HasPrefix(got, "-32603 credential masking: open /nowhere/") || !strings.HasSuffix(got, "[spawnFailed]") {
		t.Errorf("got %s", got)
	}
}

func withEnv(params, more string) string {
	return strings.Replace(params, `"env":{`, `"env":{"X":"x"`+more+`,`, 1)
}
