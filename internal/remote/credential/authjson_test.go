package credential

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAuthJSON has files with which the reference was tried.
func TestAuthJSON(t *testing.T) {
	const tokens = `"tokens":{"id_token":"i","access_token":"acc","refresh_token":"r","account_id":"acct"}`
	home := t.TempDir()
	s := AuthJSON(t.Context(), home)
	if text := wantUnavailable(t, s); !strings.Contains(text, "run `codex login` or set CODEX_API_KEY") {
		t.Error(text)
	}
	for text, want := range map[string]string{
		`{"OPENAI_API_KEY":"sk"}`:                                      "Bearer sk ",
		`{"OPENAI_API_KEY":null,` + tokens + `}`:                       "Bearer acc acct",
		`{"OPENAI_API_KEY":"sk",` + tokens + `}`:                       "Bearer sk ",
		`{"auth_mode":"chatgpt","OPENAI_API_KEY":"sk",` + tokens + `}`: "Bearer acc acct",
		`{"auth_mode":"apikey","OPENAI_API_KEY":"sk",` + tokens + `}`:  "Bearer sk ",
		`{"tokens":{"access_token":"acc"}}`:                            "Bearer acc ",
		`{"tokens":{"access_token":"acc","account_id":null}}`:          "Bearer acc ",
		`{}`:                                     "",
		`junk hunter2`:                           "",
		`{"OPENAI_API_KEY":"hunter 2"}`:          "",
		`{"OPENAI_API_KEY":7}`:                   "",
		`{"auth_mode":"hunter2",` + tokens + `}`: "",
		`{"tokens":{"access_token":"hunter2 "}}`: "",
		`{"tokens":{"access_token":"hunter2","account_id":"a\r\nb: c"}}`: "",
	} {
		write(t, home+"/auth.json", text)
		if want == "" {
			if text := wantUnavailable(t, s); strings.Contains(text, "hunter") {
				t.Error(text)
			}
			continue
		}
		r := request(t, "http://127.0.0.1/")
		if err := s.Authorize(t.Context(), r, nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := r.Header.Get("Authorization") + " " + r.Header.Get("chatgpt-account-id"); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestAuthJSONHosts(t *testing.T) {
	home := t.TempDir()
	s := AuthJSON(t.Context(), home)
	write(t, home+"/auth.json", `{"tokens":{"access_token":"acc"}}`)
	allow(t, s, "http://h.test", true)
	write(t, home+"/auth.json", `{"OPENAI_API_KEY":"sk"}`)
	allow(t, s, "http://h.test", false)
	allow(t, s, "https://api.openai.com", true)
	// The login that Allows saw is not the one that is there now.
	r := request(t, "https://h.test/")
	if err := s.Authorize(t.Context(), r, nil); err == nil || len(r.Header) != 0 {
		t.Errorf("the key goes to h.test: %v", r.Header)
	}
}

func TestAuthJSONChanges(t *testing.T) {
	home := t.TempDir()
	write(t, home+"/auth.json", `{"OPENAI_API_KEY":"sk"}`)
	synctest.Test(t, func(t *testing.T) {
		s := AuthJSON(t.Context(), home)
		synctest.Wait()
		ch := s.Changed()
		write(t, home+"/auth.json", `{"OPENAI_API_KEY":"ks"}`)
		time.Sleep(pollEvery)
		synctest.Wait()
		if !isClosed(ch) {
			t.Error("another key was not noticed")
		}
	})
}

func FuzzAuthJSON(f *testing.F) {
	f.Add([]byte(`{"OPENAI_API_KEY":"sk"}`))
	f.Add([]byte(`{"tokens":{"access_token":"acc","account_id":"a"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := parseAuthJSON(text)
		if err == nil && (l.token.Reveal() == "" || !isHeaderValue(l.token.Reveal()+l.account)) {
			t.Errorf("%q gave a token that no header can have", text)
		}
	})
}
