package masking

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/ca"
	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

const (
	githubToken = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	openaiKey   = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789abcdef"
	myKey       = "abc01234567890123456789"
	mine        = `{"my":{"env":["A"],"patterns":["abc[0-9]{20}"],"url_prefixes":["https://a.example/v1"],"auth":["header","bearer"],"header":"X-Key","prefix":"K "}}`
)

func TestMask(t *testing.T) {
	providers, err := custom([]byte(mine))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"GITHUB_TOKEN": githubToken, "gh_token": "odd\n", "OPENAI_API_KEY": openaiKey, "A": "key=" + myKey,
		"TEXT": "x " + githubToken + " y " + myKey, "OTHER": "ghp_zzcdefghijklmnopqrstuvwxyz0123456789",
		"GH_ENTERPRISE_TOKEN": "enterprise-token", "EMPTY": "", "OPENAI_BASE_URL": "https://own.example/v1", "PATH": "/bin:odd",
	}
	before := maps.Clone(env)
	found, err := Mask(env, providers)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]string{
		"GITHUB_TOKEN": `^ghp_masked\w{32}$`, "gh_token": `^ghp_masked\w{32}$`, "OPENAI_API_KEY": `^sk-proj-masked\w{32}$`, "A": `^key=abc\d{20}$`,
		"TEXT": `^x ghp_masked\w{32} y abc\d{20}$`, "OTHER": `^ghp_masked\w{32}$`, "GH_ENTERPRISE_TOKEN": `^ghp_masked\w{32}$`,
		"EMPTY": "^$", "OPENAI_BASE_URL": "^https://own.example/v1$", "PATH": "^/bin:odd$",
	} {
		if !regexp.MustCompile(form).MatchString(env[name]) || env[name] == before[name] && strings.ContainsAny(form, `\`) {
			t.Errorf("%s is %q", name, env[name])
		}
	}
	if !strings.Contains(env["TEXT"], env["GITHUB_TOKEN"]) || !strings.HasSuffix(env["A"], env["TEXT"][len(env["TEXT"])-23:]) {
		t.Errorf("one secret has two placeholders: %v", env)
	}
	urls := map[string]string{}
	for _, c := range found {
		urls[c.Secret] += fmt.Sprint(c.URLs)
		for name, value := range env {
			if len(c.Secret) >= shortSecret && strings.Contains(value, c.Secret) {
				t.Errorf("%s still has a secret", name)
			}
		}
	}
	hub := "[https://api.github.com https://github.com https://uploads.github.com]"
	want := map[string]string{
		githubToken: hub, "odd": hub, before["OTHER"]: hub, openaiKey: "[https://api.openai.com https://own.example/v1]",
		myKey: "[https://a.example/v1]", "enterprise-token": "[]",
	}
	if !maps.Equal(urls, want) {
		t.Errorf("got  %v\nwant %v", urls, want)
	}
}

func TestWhatCannotBeMasked(t *testing.T) {
	many := map[string]string{}
	for i := range maxCredentials + 1 {
		many[fmt.Sprint("V", i)] = fmt.Sprintf("abc%020d", i)
	}
	fixed := strings.Replace(mine, "abc[0-9]{20}", "abcdefgh", 1)
	unseen := strings.Replace(mine, "abc[0-9]{20}", "[^\\\\x00-\\\\x7f]+", 1)
	for i, c := range []struct {
		env       map[string]string
		providers string
		want      error
	}{
		{many, mine, errTooMany},
		{map[string]string{"GITHUB_TOKEN": strings.Repeat("x", maxCredentialBytes)}, "{}", errTooMany},
		{map[string]string{"GITHUB_TOKEN": "a\nb"}, "{}", errNUL},
		{map[string]string{"A": "abcdefgh"}, fixed, errPlaceholder},
		{map[string]string{"A": "ü"}, unseen, errPlaceholder},
	} {
		providers, err := custom([]byte(c.providers))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Mask(c.env, providers); err != c.want {
			t.Errorf("%d: %v, want %v", i, err, c.want)
		}
	}
}

func TestProvidersThatAreRefused(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`["A"]`, `[]`, "credential provider `my` has no environment keys"},
		{`["A"]`, `["a b"]`, "credential provider `my` has an invalid environment key"},
		{`["A"]`, `["github_token"]`, "credential provider `my` overlaps a built-in credential source"},
		{`["https://a.example/v1"]`, `[]`, "credential provider `my` has no destination URL prefixes"},
		{`https://a.example/v1`, `http://a.example`, "invalid destination for credential provider `my`"},
		{`["abc[0-9]{20}"]`, `[]`, "credential provider `my` has no credential patterns"},
		{`abc[0-9]{20}`, `(`, "invalid credential pattern for provider `my`"},
		{`abc[0-9]{20}`, `.*`, "invalid credential pattern for provider `my`"},
		{`"X-Key"`, `""`, "credential provider `my` requires a header name exactly when using header authentication"},
		{`["header","bearer"]`, `["bearer"]`, "credential provider `my` requires a header name exactly when using header authentication"},
		{`["header","bearer"],"header":"X-Key"`, `[]`, "credential provider `my` requires header authentication to use a header prefix"},
		{`"X-Key"`, `"X Key"`, "invalid header for credential provider `my`"},
		{`"K "`, `"K\n"`, "invalid header for credential provider `my`"},
		{`"bearer"`, `"x"`, "credential provider `my` has an unknown form of authentication"},
		{`"K "`, `"` + strings.Repeat("x", maxProviderText+1) + `"`, "credential provider `my` is too long"},
		{`"my"`, `""`, "credential provider name must not be empty"},
		{`"env"`, `"x"`, "credential providers: they are not of the known shape"},
	} {
		if _, err := custom([]byte(strings.Replace(mine, c.from, c.to, 1))); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}

func TestDestinations(t *testing.T) {
	for _, c := range []struct{ prefix, url, want string }{
		{"https://a.example", "https://a.example/x", "at covers"},
		{"https://A.example./v1/", "https://a.example/v1", "at covers"},
		{"https://a.example/v1/", "https://a.example/v1/x", "at covers"},
		{"https://a.example/v1", "https://a.example/v1x", "at"},
		{"https://a.example/v1", "https://a.example/v1/../v2", "at"},
		{"https://a.example/v1", "https://a.example/v1/%2e%2E/v2", "at"},
		{"https://a.example/v1", "https://a.example/v1/..%5cv2", "at"},
		{"https://a.example/v1", "https://a.example/v1/..%2fv2", "at"},
		{"https://a.example/v1/x", "https://a.example/v1%2fx", "at"},
		{"https://a.example", "http://a.example/", ""},
		{"https://a.example", "https://a.example:444/", ""},
		{"https://a.example:444", "https://a.example:444/", "at covers"},
		{"https://a.example", "https://b.a.example/", ""},
		{"https://*.a.example", "https://b.a.example/", "at covers"},
		{"https://*.a.example", "https://a.example/", ""},
		{"https://*.a.example", "https://ba.example/", ""},
		{"https://**.a.example", "https://a.example/", "at covers"},
		{"http://127.0.0.1:81/", "http://127.0.0.1:81/", "at covers"},
		{"http://localhost", "http://localhost/", "at covers"},
		{"http://[::1]:82", "http://[::1]:82/", "at covers"},
	} {
		d, err := ParseDestination(c.prefix)
		if err != nil {
			t.Errorf("%s: %v", c.prefix, err)
			continue
		}
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		port := map[string]uint16{"": 443, "81": 81, "82": 82, "444": 444}[u.Port()]
		if u.Scheme == "http" && u.Port() == "" {
			port = 80
		}
		h, _ := policy.ParseHost(u.Hostname())
		got := ""
		if d.at(u.Scheme, h, port) {
			got = "at"
			if d.covers(u) {
				got += " covers"
			}
		}
		if got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.prefix, c.url, got, c.want)
		}
	}
	for _, s := range []string{
		"", "a.example", "https://", "http://a.example", "http://*.localhost", "ftp://a.example", "https://u@a.example", "https://a.example?x",
		"https://a.example?", "https://a.example#x", "https://*.1.2.3.4", "https://a.*.example", "https://a.example:0", "https://a.example:99999", "https://*",
	} {
		if d, err := ParseDestination(s); err == nil {
			t.Errorf("%s is %+v", s, d)
		}
	}
}

func basic(pair string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair)) }

func TestRestore(t *testing.T) {
	d, _ := ParseDestination("https://a.example")
	s := &Secrets{Credentials: []Credential{{
		Secret: "secret", Placeholder: "mask", Auth: []Form{Bearer, Token, Basic, Header}, Header: "X-Key", Prefix: "K ", destinations: []Destination{d},
	}}}
	a, _ := policy.ParseHost("a.example")
	b, _ := policy.ParseHost("b.example")
	for _, c := range []struct{ name, value, want string }{
		{"Authorization", "Bearer mask", "Bearer secret"},
		{"Authorization", "bearer  mask", "bearer secret"},
		{"Authorization", "token mask", "token secret"},
		{"Authorization", basic("mask:x"), basic("secret:x")},
		{"Authorization", basic("x:mask"), basic("x:secret")},
		{"Authorization", basic("x:masks"), basic("x:masks")},
		{"Authorization", "Basic mask", "Basic mask"},
		{"Authorization", "mask", "mask"},
		{"Authorization", "Bearer masks", "Bearer masks"},
		{"X-Key", "K mask", "K secret"},
		{"X-Key", "mask", "mask"},
		{"X-Other", "K mask", "K mask"},
	} {
		for _, where := range []struct {
			method, scheme string
			host           policy.Host
			port           uint16
			there          bool
		}{
			{"GET", "https", a, 443, true}, {"TRACE", "https", a, 443, false}, {"GET", "http", a, 443, false}, {"GET", "https", b, 443, false}, {"GET", "https", a, 444, false},
		} {
			head := http.Header{c.name: {c.value, c.value}}
			s.Restore(head, where.method, where.scheme, where.host, where.port, &url.URL{Path: "/x"})
			want := c.value
			if where.there {
				want = c.want
			}
			if got := fmt.Sprint(head[c.name]); got != fmt.Sprint([]string{want, want}) {
				t.Errorf("%s %s at %+v: %s", c.name, c.value, where, got)
			}
		}
	}
	if s.Reach(b, 443) || !s.Reach(a, 443) || s.Reach(a, 80) || (*Secrets)(nil).Reach(a, 443) {
		t.Error("the wrong hosts are reached")
	}
}

func TestAnswer(t *testing.T) {
	dir := t.TempDir()
	named := filepath.Join(dir, "own.pem")
	text, err := ca.New("another", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	another, err := ca.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(named, []byte("words\n"+string(another.PEM())+"-----BEGIN SECRET-----\nYQ==\n-----END SECRET-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	params, _ := json.Marshal(map[string]any{"env": map[string]string{"A": myKey, "B": "b", "SSL_CERT_FILE": named}, "providers": json.RawMessage(mine)})
	answer, err := Answer(params)
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	if err := json.Unmarshal(answer, &r); err != nil {
		t.Fatal(err)
	}
	s, err := ParseSecrets(r.Proxy)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Env) != 1 || r.Env["A"] != s.Credentials[0].Placeholder || s.Credentials[0].Secret != myKey {
		t.Errorf("got %s", answer)
	}
	if r.Bundle != string(another.PEM())+string(s.authority.PEM()) {
		t.Errorf("the bundle is %s", r.Bundle)
	}
	if answer, err = Answer([]byte(`{"env":{"B":"b"}}`)); err != nil || string(answer) != `{"env":{},"bundle":"","proxy":null}` {
		t.Errorf("without credentials: %s, %v", answer, err)
	}
	for _, p := range []string{`[]`, `{"env":{"GITHUB_TOKEN":"a\u0000b"}}`, `{"env":{},"providers":{"x":{}}}`} {
		if text, err := Answer([]byte(p)); err == nil {
			t.Errorf("%s: %s", p, text)
		}
	}
	for _, p := range []string{`[]`, `{}`, `{"credentials":[{"urls":["x"]}]}`, strings.Replace(string(r.Proxy), "PRIVATE KEY", "OTHER", 1)} {
		if _, err := ParseSecrets([]byte(p)); err == nil {
			t.Errorf("%s is read", p)
		}
	}
}

func FuzzDestination(f *testing.F) {
	for _, s := range []string{"https://a.example/v1", "https://*.a.example:444", "http://[::1]:8/", "https://**.x"} {
		f.Add(s, "/v1/x")
	}
	f.Fuzz(func(t *testing.T, s, path string) {
		d, err := ParseDestination(s)
		if err != nil {
			return
		}
		if d.host == "" || d.port == 0 || d.scheme != "https" && d.scheme != "http" {
			t.Errorf("%q is %+v", s, d)
		}
		u := &url.URL{Path: path}
		if d.covers(u) && !strings.HasPrefix(u.EscapedPath(), d.path) {
			t.Errorf("%q covers %q", s, path)
		}
	})
}

func FuzzPlaceholder(f *testing.F) {
	for _, s := range []string{"abc[0-9]{20}", "(a|b)+x?", `\bsk-\w{3,}$`, "[^a]*.", "(?i)key-[a-f]{4}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		whole, err := regexp.Compile(`^(?:` + pattern + `)$`)
		if err != nil {
			return
		}
		s, err := example(pattern)
		if err == nil && (!whole.MatchString(s) || len(s) > 2*maxPlaceholder) {
			t.Errorf("%q does not match %q, or is too long", s, pattern)
		}
	})
}
