package credential

import (
	"encoding/base64"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/exec-server/exec-server/internal/secret"
)

func TestBearerStdin(t *testing.T) {
	for text, want := range map[string]string{
		"tok\n": "", "tok\r\n": "", "tok\nmore": "", "tok": "", strings.Repeat("x", secret.Max-1): "",
		strings.Repeat("x", secret.Max-1) + "\n": "",
		strings.Repeat("x", secret.Max) + "\n":   "expected a newline-terminated registration bearer of at most 16 KiB",
		strings.Repeat("x", secret.Max):          "expected a newline-terminated registration bearer of at most 16 KiB",
		"t k":                                    "invalid registration bearer",
		"":                                       "expected a newline-terminated registration bearer of at most 16 KiB; standard input is empty",
		"\n":                                     "invalid registration bearer",
		"Bearer tok\n":                           "invalid registration bearer",
		" tok\n":                                 "invalid registration bearer",
		"t\x01k\n":                               "invalid registration bearer",
		"caf\u00e9\n":                            "invalid registration bearer",
		"a\r\r\n":                                "invalid registration bearer",
	} {
		s, err := BearerStdin(iotest.OneByteReader(strings.NewReader(text)))
		if want != "" {
			if err == nil || err.Error() != want {
				t.Errorf("%.20q: %v", text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%.20q: %v", text, err)
			continue
		}
		line, _, _ := strings.Cut(text, "\n")
		if got := shown(t, s); got != "Bearer "+strings.TrimSuffix(line, "\r") {
			t.Errorf("%.20q: %.30s", text, got)
		}
		if !s.Scoped() || s.Done() != nil {
			t.Error("it is not scoped, or it watches the pipe")
		}
		allow(t, s, "http://h.test", false)
		allow(t, s, "http://localhost", true)
	}
}

func jwt(claims string) string {
	b := base64.RawURLEncoding.EncodeToString
	return b([]byte(`{"alg":"none"}`)) + "." + b([]byte(claims)) + "." + b([]byte("sig"))
}

// TestChatGPTStdin has tokens with which the reference was tried.
func TestChatGPTStdin(t *testing.T) {
	const claim = `{"exp":1995999999,"https://api.openai.com/auth":{"chatgpt_account_id":"acct"}}`
	for _, tt := range []struct{ line, account, want, err string }{
		{line: jwt(claim) + "\n", want: "acct"},
		{line: jwt(claim) + "\n", account: "acct", want: "acct"},
		{line: jwt(`{}`) + "\r\n", account: "mine", want: "mine"},
		{line: jwt(claim) + "\n", account: "other", err: errChatGPTAccount.Error()},
		{line: jwt(`{}`) + "\n", err: errChatGPTNoID.Error()},
		{line: jwt(`[]`) + "\n", err: errChatGPTNoID.Error()},
		{line: jwt(claim), err: errChatGPTLine.Error()},
		{line: "", err: errChatGPTLine.Error()},
		{line: "tok\n", err: errChatGPTToken.Error()},
		{line: "a.b.c\n", err: errChatGPTToken.Error()},
		{line: jwt("junk") + "\n", err: errChatGPTToken.Error()},
		{line: jwt(`{}`) + "\n", account: "a\r\nb: c", err: errChatGPTToken.Error()},
	} {
		s, err := ChatGPTStdin(strings.NewReader(tt.line), tt.account)
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%q %q: %v", tt.line, tt.account, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q %q: %v", tt.line, tt.account, err)
			continue
		}
		r := request(t, "https://h.test")
		if err := s.Authorize(t.Context(), r, nil); err != nil || r.Header.Get("chatgpt-account-id") != tt.want || r.Header.Get("Authorization") != "Bearer "+strings.TrimSpace(tt.line) {
			t.Errorf("%v, %v", r.Header, err)
		}
		for base, want := range map[string]bool{
			"https://h.test/x": true, "https://127.0.0.1": true, "http://127.0.0.1": false, "https://u@h.test": false, "https://h.test#f": false,
		} {
			allow(t, s, base, want)
		}
	}
}

func FuzzChatGPT(f *testing.F) {
	f.Add(jwt(`{"https://api.openai.com/auth":{"chatgpt_account_id":"acct"}}`), "")
	f.Add("a.b.c", "acct")
	f.Fuzz(func(t *testing.T, line, account string) {
		s, err := ChatGPTStdin(strings.NewReader(line+"\n"), account)
		if err == nil && (s.(*chatGPT).account == "" || !isHeaderValue(s.(*chatGPT).account)) {
			t.Errorf("%q %q gave %q", line, account, s.(*chatGPT).account)
		}
	})
}
