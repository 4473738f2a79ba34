package broker

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/secret"
)

func basic(pair string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair)) }

func TestField(t *testing.T) {
	with := func(c rules.Credential) rules.Credential {
		c.Placeholder = "PH"
		return c
	}
	var plain rules.Credential
	for _, tt := range []struct {
		c            rules.Credential
		sent         []string
		header, want string
	}{
		{plain, nil, "Authorization", "Bearer s3"},
		{plain, []string{"Bearer mine"}, "Authorization", "Bearer s3"},
		{rules.Credential{Format: "token {secret}"}, []string{"PH"}, "Authorization", "token s3"},
		{rules.Credential{Header: "x-api-key"}, nil, "X-Api-Key", "s3"},
		{rules.Credential{Header: "authorization"}, nil, "Authorization", "Bearer s3"},
		{rules.Credential{Header: "X-Key", Format: "k={secret}; again={secret}"}, nil, "X-Key", "k=s3; again=s3"},
		{rules.Credential{BasicUser: "u"}, nil, "Authorization", basic("u:s3")},
		{with(plain), nil, "Authorization", "Bearer s3"},
		{with(plain), []string{"token PH"}, "Authorization", "token s3"},
		{with(plain), []string{"x", "token PH"}, "Authorization", "token s3"},
		{with(plain), []string{"PH PH"}, "Authorization", "s3 PH"},
		{with(plain), []string{basic("me:PH")}, "Authorization", basic("me:s3")},
		{with(plain), []string{strings.ToLower(basic("")) + base64.StdEncoding.EncodeToString([]byte("PH:"))}, "Authorization", basic("s3:")},
		{with(plain), []string{basic("me:other")}, "Authorization", "Bearer s3"},
		{with(plain), []string{"Basic ***"}, "Authorization", "Bearer s3"},
		{with(rules.Credential{BasicUser: "u"}), []string{"Bearer PH"}, "Authorization", "Bearer s3"},
	} {
		header, value, err := field(&tt.c, secret.New("s3"))
		if err != nil || header != tt.header || value(tt.sent) != tt.want {
			t.Errorf("%+v, %q: %s: %s, %v", tt.c, tt.sent, header, value(tt.sent), err)
		}
	}
	for _, bad := range []string{"", "a\r\nb: c", "a\x00"} {
		if _, _, err := field(&plain, secret.New(bad)); err == nil || strings.Contains(err.Error(), "a") && strings.Contains(err.Error(), "b:") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestTheSecretIsForItsHostAlone has the placeholder everywhere else, too.
func TestTheSecretIsForItsHostAlone(t *testing.T) {
	w := start(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://a.test/")
		w.WriteHeader(http.StatusFound)
		_ = r.Header.Write(w)
		_, _ = io.WriteString(w, r.RequestURI)
	})
	c := w.client(nil)
	for host, want := range map[string]string{
		"cred.test":   "Authorization: token hunter2\r\nX-Other: PLACEHOLDER\r\n/PLACEHOLDER",
		"a.test":      "Authorization: token PLACEHOLDER\r\nX-Other: PLACEHOLDER\r\n/PLACEHOLDER",
		"x.cred.test": "Authorization: token PLACEHOLDER\r\nX-Other: PLACEHOLDER\r\n/PLACEHOLDER",
	} {
		r := request(t, "GET", "http://"+host+"/PLACEHOLDER", "")
		r.Header = http.Header{"Authorization": {"token PLACEHOLDER"}, "X-Other": {"PLACEHOLDER"}, "User-Agent": {""}, "Accept-Encoding": {"identity"}}
		want = "Accept-Encoding: identity\r\n" + want
		if a := w.get(c, r); a.body != want || a.StatusCode != http.StatusFound {
			t.Errorf("%s: %s %q", host, a.Status, a.body)
		}
	}
}

// TestAConnectionCannotDropTheField has the client call it one of the connection.
func TestAConnectionCannotDropTheField(t *testing.T) {
	w := start(t, echo)
	a := w.exchange(w.connect(), "GET", "GET / HTTP/1.1\r\nHost: cred.test\r\nConnection: Authorization\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n", 1)[0]
	if a.body != `GET cred.test / auth=["Bearer hunter2"] body=` {
		t.Error(a.body)
	}
}

// TestWithoutASecretNothingIsSent has the host see nothing, nor the sandbox the reason.
func TestWithoutASecretNothingIsSent(t *testing.T) {
	for name, read := range map[string]func(context.Context, *rules.Credential) (secret.Secret, error){
		"fails": func(context.Context, *rules.Credential) (secret.Secret, error) {
			return secret.Secret{}, errors.New("no /etc/token")
		},
		"none": func(context.Context, *rules.Credential) (secret.Secret, error) { return secret.Secret{}, nil },
		"bad": func(context.Context, *rules.Credential) (secret.Secret, error) {
			return secret.New("hunter2\r\nX: y"), nil
		},
	} {
		w := start(t, func(http.ResponseWriter, *http.Request) { t.Error(name + ": it has arrived") })
		w.o.Secret = read
		a := w.exchange(w.connect(), "GET", "GET / HTTP/1.1\r\nHost: cred.test\r\nAuthorization: PLACEHOLDER\r\n\r\n", 1)[0]
		if a.StatusCode != 502 || a.body != "exec-server: there is no credential for cred.test\n" {
			t.Errorf("%s: %s %s", name, a.Status, a.body)
		}
		if got := w.seen(&w.dialed); len(got) > 0 {
			t.Errorf("%s: dialed %q", name, got)
		}
		if got := w.seen(&w.decided); len(got) != 1 || !strings.HasPrefix(got[0], "cred.test http 0 credential 4 ") || strings.Contains(got[0], "hunter2") {
			t.Errorf("%s: told of %q", name, got)
		}
	}
}

// TestHostsThatRepeatTheSecret do so where an error would quote it.
func TestHostsThatRepeatTheSecret(t *testing.T) {
	for _, answer := range []string{"%s", "HTTP/1.1 200 OK\r\n%s\r\n\r\n", "HTTP/1.1 %s\r\n\r\n"} {
		w := start(t, func(w http.ResponseWriter, r *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = fmt.Fprintf(c, answer, r.Header.Get("Authorization"))
		})
		c := w.connect()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: cred.test\r\n\r\n")
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		if got := w.seen(&w.failed); len(got) != 1 || strings.Contains(got[0], "hunter2") {
			t.Errorf("told of %q", got)
		}
	}
}
