package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/exec-server/exec-server/internal/remote/credential"
)

// TestErrorTexts has what the reference printed for the same answers, but for
// lines, which become blanks here.
func TestErrorTexts(t *testing.T) {
	const (
		authentication = "environment registry authentication error: environment registry authentication failed "
		request        = "environment registry request failed "
	)
	for _, tt := range []struct {
		status int
		body   string
		scoped bool
		want   string
	}{
		{status: 401, body: `{"error":{"code":"c","message":"m"}}`, want: authentication + "(401 Unauthorized): m"},
		{status: 403, body: "plain text", want: authentication + "(403 Forbidden): plain text"},
		{status: 404, body: " plain text\n", want: request + "(404 Not Found): plain text"},
		{status: 404, body: `{"error":{"code":"c","message":"m"}}`, want: request + "(404 Not Found, c): m"},
		{status: 404, body: `{"error":{"code":"x"}}`, want: request + `(404 Not Found, x): {"error":{"code":"x"}}`},
		{status: 404, body: `{"error":{"message":"m"}}`, want: request + "(404 Not Found): m"},
		{status: 404, body: `{"error":{"code":null,"message":"m"}}`, want: request + "(404 Not Found): m"},
		{status: 404, body: `{"error":{"code":7,"message":"m"}}`, want: request + `(404 Not Found): {"error":{"code":7,"message":"m"}}`},
		{status: 404, body: `{"error":"text"}`, want: request + `(404 Not Found): {"error":"text"}`},
		{status: 404, body: `{"message":"mm"}`, want: request + `(404 Not Found): {"message":"mm"}`},
		{status: 404, body: "a\nb\x1b[31m", want: request + "(404 Not Found): a b [31m"},
		{status: 404, body: "", want: request + "(404 Not Found): empty or malformed error body"},
		{status: 401, body: " ", want: authentication + "(401 Unauthorized): empty error body"},
		{status: 418, body: "x", want: request + "(418 I'm a teapot): x"},
		{status: 302, body: "x", want: request + "(302 Found): x"},
		{status: 599, body: "x", want: request + "(599 <unknown status code>): x"},
		{status: 401, body: "m", scoped: true, want: authentication + "(401 Unauthorized): response body omitted"},
		{status: 404, body: `{"error":{"code":"c","message":"m"}}`, scoped: true, want: request + "(404 Not Found): environment registry executor registration failed"},
		{status: 401, body: "no " + token + "!", want: authentication + "(401 Unauthorized): no [redacted]!"},
	} {
		var source = bearer(t)
		if tt.scoped {
			source = scoped{source}
		}
		c, _ := fake(t, source, answer(tt.status, tt.body))
		_, err := c.RegisterDirect(t.Context())
		if tt.status == 404 {
			tt.want += " (asked at " + strings.TrimSuffix(strings.TrimPrefix(c.Base, "http://"), "//") + ")"
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("%d %q:\n got %v\nwant %s", tt.status, tt.body, err, tt.want)
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Status != tt.status {
			t.Errorf("%v is not an *Error", err)
		}
	}
}

type placed struct{ credential.Source }

func (placed) Place() string { return "/a\nkey" }

// TestHints has what helps whoever has to mend it, and nothing of a query.
func TestHints(t *testing.T) {
	for status, want := range map[int]string{401: "with the key from /a key", 403: "with the key from /a key", 404: "asked at ", 400: ""} {
		c, _ := fake(t, placed{bearer(t)}, answer(status, "no"))
		c.Base += "?token=x"
		_, err := c.RegisterDirect(t.Context())
		e, ok := errors.AsType[*Error](err)
		if !ok || !strings.HasPrefix(e.Hint, want) || (e.Hint == "") != (want == "") || strings.Contains(e.Hint, "token") {
			t.Errorf("%d: the hint is %q, of %v", status, e.Hint, err)
		}
		err = c.Validate(t.Context(), "r", "s", publicKey(t), "a")
		if e, ok := errors.AsType[*Error](err); !ok || e.Hint != "" {
			t.Errorf("%d: a harness's check has %v", status, err)
		}
	}
}

func TestLongMessages(t *testing.T) {
	c, _ := fake(t, bearer(t), answer(500, strings.Repeat("é", 5000)))
	_, err := c.RegisterDirect(t.Context())
	if e, ok := errors.AsType[*Error](err); !ok || utf8.RuneCountInString(e.Message) != maxMessage {
		t.Errorf("%.100v", err)
	}
	c, _ = fake(t, bearer(t), answer(500, strings.Repeat("x", maxAnswer+1)))
	_, err = c.RegisterDirect(t.Context())
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != 500 {
		t.Errorf("the status is lost: %.100v", err)
	}
}

// What a request proves itself with is in no error, however the registry says it.
func TestSecretsAreNotRepeated(t *testing.T) {
	const secret = "tok-0123456789"
	source, err := credential.Bearer(secret)
	if err != nil {
		t.Fatal(err)
	}
	var escaped strings.Builder
	for _, r := range "Bearer " + secret {
		fmt.Fprintf(&escaped, `\u%04x`, r)
	}
	raw := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte(text))
				_ = conn.Close()
			}
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"text":         answer(403, "you sent Bearer "+secret),
		"message":      answer(400, `{"error":{"code":"c","message":"`+escaped.String()+`"}}`),
		"code":         answer(400, `{"error":{"code":"`+escaped.String()+`","message":"m"}}`),
		"profile":      answer(200, `{"environment_id":"env-1","url":"u","security_profile":"`+escaped.String()+`","executor_registration_id":"r"}`),
		"transport":    answer(200, `{"environment_id":"env-1","url":"u","transport":"`+escaped.String()+`","registration_id":"r"}`),
		"no header":    raw("HTTP/1.1 200 OK\r\nyou sent " + secret + "\r\n\r\n"),
		"aws":          answer(403, `{"message":"the canonical string was 'x-amz-security-token:session-token'"}`),
		"aws, escaped": answer(403, `{"error":{"message":"session\u002dtoken"}}`),
	} {
		c, _ := fake(t, withSession{source}, h)
		_, err := c.RegisterNoise(t.Context(), publicKey(t))
		if name == "transport" {
			_, err = c.RegisterDirect(t.Context())
		}
		if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "session-token") || !strings.Contains(err.Error(), "[redacted]") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// withSession is a credential with another in a header of AWS's.
type withSession struct{ credential.Source }

func (s withSession) Authorize(ctx context.Context, r *http.Request, body []byte) error {
	r.Header.Set("X-Amz-Security-Token", "session-token")
	return s.Source.Authorize(ctx, r, body)
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "3600": time.Hour, "3601": time.Hour, "18446744073709551615": time.Hour,
		"99999999999999999999999": 0, "-5": 0, "1.5": 0, "soon": 0,
		"Sun, 29 Nov 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 29 Nov 2026 11:00:00 GMT": 0,
		"Sun, 29 Nov 2099 11:00:00 GMT": time.Hour,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
	c, _ := fake(t, bearer(t), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "9")
		answer(429, "x")(w, r)
	})
	_, err := c.RegisterDirect(t.Context())
	if e, ok := errors.AsType[*Error](err); !ok || e.RetryAfter != 9*time.Second {
		t.Errorf("%+v", e)
	}
}

func TestCheck(t *testing.T) {
	key, err := credential.APIKey("k")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		base, id string
		source   credential.Source
		want     string
	}{
		{"http://127.0.0.1:1", "e", key, ""},
		{"https://x.openai.com/", "e", key, ""},
		{"https://elsewhere.test/", "e", key, "restricted to HTTPS openai.com"},
		{"https://elsewhere.test/", "e", bearer(t), ""},
		{"http://elsewhere.test/", "e", bearer(t), "requires https"},
		{"127.0.0.1:1", "e", key, "invalid remote exec-server registration URL"},
		{"", "e", key, "invalid remote exec-server registration URL: relative URL without a base"},
		{"https://u:hunter2@h:port", "e", key, "invalid remote exec-server registration URL"},
		{"http://127.0.0.1", "  ", key, "environment registry configuration error: environment id is required for remote exec-server registration"},
		{"https:", "e", bearer(t), "with a host"},
	} {
		c := &Client{Base: tt.base, EnvironmentID: tt.id, Credential: tt.source}
		err := c.Check()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: %v", tt, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter") {
			t.Errorf("the password is told: %v", err)
		}
	}
}

func TestRefusalIsTold(t *testing.T) {
	s := &sensitive{Source: bearer(t)}
	status := 500
	c, calls := fake(t, s, func(w http.ResponseWriter, r *http.Request) { answer(status, "x")(w, r) })
	for _, status = range []int{500, 404, 429, 401, 403} {
		_, _ = c.RegisterDirect(t.Context())
	}
	if s.refused != 2 || len(*calls) != 5 {
		t.Errorf("refused %d times in %d calls", s.refused, len(*calls))
	}
}

func TestNoCredential(t *testing.T) {
	c, calls := fake(t, credential.File(t.Context(), t.TempDir()+"/missing"), answer(200, registered))
	_, err := c.RegisterNoise(t.Context(), publicKey(t))
	if !errors.Is(err, credential.ErrUnavailable) || len(*calls) != 0 {
		t.Errorf("%d calls, %v", len(*calls), err)
	}
}

func FuzzError(f *testing.F) {
	f.Add([]byte(`{"error":{"code":"c","message":"m"}}`))
	f.Add([]byte("\xff\x1b[31m\u0085"))
	f.Fuzz(func(t *testing.T, body []byte) {
		code, message := parseError(nil, body)
		for _, text := range []string{code, message} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x1b\u0085") || utf8.RuneCountInString(text) > maxMessage {
				t.Errorf("%q", text)
			}
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("7")
	f.Add("Sun, 29 Nov 2026 12:00:30 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		if d := retryAfter(value, time.Now()); d < 0 || d > maxRetryAfter {
			t.Errorf("%q: %v", value, d)
		}
	})
}
