package credential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/exec-server/exec-server/internal/secret"
)

func line(token string, expires int64) string {
	return fmt.Sprintf(`{"version":1,"environment_id":"env","token":%q,"expires_at":%d}`+"\n", token, expires)
}

const far = 4102444800 // the year 2100

func TestFirstExecutorCredential(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		err  error
	}{
		"good":            {text: line("tok", far)},
		"CRLF":            {text: strings.Replace(line("tok", far), "\n", "\r\n", 1)},
		"blanks":          {text: " " + line("tok", far)},
		"never expires":   {text: line("tok", 1<<62)},
		"nothing":         {err: errPipe},
		"empty line":      {text: "\n", err: errFrame},
		"no end":          {text: strings.TrimSpace(line("tok", far)), err: errFrame},
		"junk":            {text: "hunter2\n", err: errFrame},
		"expired":         {text: line("tok", 1), err: ErrExpired},
		"other":           {text: strings.Replace(line("tok", far), "env", "vne", 2), err: errFrame},
		"environment":     {text: strings.Replace(line("tok", far), `"env"`, `"vne"`, 1), err: errEnvironment},
		"version":         {text: strings.Replace(line("tok", far), ":1,", ":2,", 1), err: errFrame},
		"version's form":  {text: strings.Replace(line("tok", far), ":1,", ":1.0,", 1), err: errFrame},
		"fraction":        {text: strings.Replace(line("tok", far), "}", ".5}", 1), err: errFrame},
		"exponent":        {text: strings.Replace(line("tok", far), "}", "e1}", 1), err: errFrame},
		"negative":        {text: line("tok", -5), err: errFrame},
		"text for number": {text: strings.Replace(line("tok", far), ":4102444800", `:"4102444800"`, 1), err: errFrame},
		"one more":        {text: strings.Replace(line("tok", far), "}", `,"z":1}`, 1), err: errFrame},
		"twice":           {text: strings.Replace(line("tok", far), "}", `,"token":"uu"}`, 1), err: errFrame},
		"other case":      {text: strings.Replace(line("tok", far), `"token"`, `"Token"`, 1), err: errFrame},
		"nested":          {text: strings.Replace(line("tok", far), `"tok"`, `["tok"]`, 1), err: errFrame},
		"no token":        {text: line("", far), err: errFrame},
		"blank in token":  {text: line("t k", far), err: errFrame},
		"line in token":   {text: line("t\nk", far), err: errFrame},
		"more after it":   {text: strings.Replace(line("tok", far), "\n", "{}\n", 1), err: errFrame},
		"list":            {text: "[1]\n", err: errFrame},
		"longest":         {text: line(strings.Repeat("x", secret.Max-len(line("", far))), far)},
		"too long":        {text: line(strings.Repeat("x", secret.Max-len(line("", far))+1), far), err: errFrame},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ExecutorStdin(t.Context(), iotest.OneByteReader(strings.NewReader(tt.text)), "env")
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			if got := shown(t, s); !strings.HasPrefix(got, "Bearer ") {
				t.Error(got)
			}
			if !s.Scoped() {
				t.Error("it is not scoped")
			}
			allow(t, s, "http://h.test", false)
			<-s.Done() // the pipe has ended, in order
			if err := s.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFirstExecutorCredentialInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		start := time.Now()
		_, err := ExecutorStdin(t.Context(), r, "env")
		if err == nil || time.Since(start) != firstLineTime {
			t.Errorf("ended after %v with %v", time.Since(start), err)
		}
		w.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, w = io.Pipe()
		if _, err := ExecutorStdin(ctx, r, "env"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		w.Close()
	})
}

func TestExecutorRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		send := func(text string) {
			_, _ = io.WriteString(w, text)
			synctest.Wait()
		}
		go send(line("one", time.Now().Add(time.Minute).Unix()))
		s := must(t)(ExecutorStdin(t.Context(), r, "env"))
		if got := shown(t, s); got != "Bearer one" {
			t.Error(got)
		}
		changed := s.Changed()
		time.Sleep(time.Minute - time.Nanosecond)
		shown(t, s)
		time.Sleep(time.Nanosecond)
		wantUnavailable(t, s)
		if err := s.Authorize(t.Context(), request(t, "http://127.0.0.1/"), nil); !errors.Is(err, ErrExpired) {
			t.Error(err)
		}
		if isClosed(changed) || isClosed(s.Done()) {
			t.Error("the end of a token is no change, nor the end of all")
		}
		send(line("two", far))
		if !isClosed(changed) || isClosed(s.Changed()) {
			t.Error("the new token is not told once")
		}
		if got := shown(t, s); got != "Bearer two" {
			t.Error(got)
		}
		w.Close()
		<-s.Done()
		if err := s.Err(); err != nil {
			t.Error(err)
		}
	})
}

func TestLaterExecutorCredentials(t *testing.T) {
	for text, want := range map[string]error{
		"junk\n": errFrame, "partial": errFrame, line("t k", far): errFrame, line("tok", 1): ErrExpired,
		strings.Replace(line("tok", far), `"env"`, `"vne"`, 1): errEnvironment, "": nil,
	} {
		s, err := ExecutorStdin(t.Context(), strings.NewReader(line("tok", far)+text), "env")
		if err != nil {
			t.Fatal(err)
		}
		<-s.Done()
		if err := s.Err(); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%q: %v", text, err)
		}
		if got := shown(t, s); got != "Bearer tok" {
			t.Error(got)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte(line("tok", far)))
	f.Add([]byte(`{"version":1,"environment_id":"e","token":"\u0020","expires_at":18446744073709551615}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseFrame(text)
		if err == nil && (got.token.Reveal() == "" || !isHeaderValue(got.token.Reveal()) || got.expires.Unix() < 0) {
			t.Errorf("%q gave %v %v", text, got.expires, got.environment)
		}
	})
}

// FuzzLines has what an owner of credentials may write after a good line.
func FuzzLines(f *testing.F) {
	f.Add([]byte(line("tok2", far)))
	f.Add([]byte(line("tok2", far) + "{}\n"))
	f.Add([]byte(strings.Repeat("x", secret.Max+1)))
	f.Fuzz(func(t *testing.T, more []byte) {
		s, err := ExecutorStdin(t.Context(), io.MultiReader(strings.NewReader(line("tok", far)), bytes.NewReader(more)), "env")
		if err != nil {
			t.Fatal(err)
		}
		<-s.Done()
		if got := shown(t, s); !strings.HasPrefix(got, "Bearer ") || !isHeaderValue(got[len("Bearer "):]) {
			t.Errorf("%q gave %q, %v", more, got, s.Err())
		}
	})
}
