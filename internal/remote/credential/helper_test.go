package credential

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

func request(t *testing.T, to string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shown is the authorization that a source puts on a request.
func shown(t *testing.T, s Source) string {
	t.Helper()
	r := request(t, "http://127.0.0.1/")
	if err := s.Authorize(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	return r.Header.Get("Authorization")
}

// unavailable wants no credential.
func wantUnavailable(t *testing.T, s Source) string {
	t.Helper()
	r := request(t, "http://127.0.0.1/")
	err := s.Authorize(context.Background(), r, nil)
	if !errors.Is(err, ErrUnavailable) || len(r.Header) != 0 {
		t.Fatalf("got %v and headers %v", err, r.Header)
	}
	return err.Error()
}

func allow(t *testing.T, s Source, base string, want bool) {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Allows(u); (err == nil) != want {
		t.Errorf("%s: %v", base, err)
	}
}

// write replaces a file in one step and returns its name.
func write(t *testing.T, path, text string) string {
	t.Helper()
	next := filepath.Join(filepath.Dir(path), ".next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func must(t *testing.T) func(Source, error) Source {
	return func(s Source, err error) Source {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
