package credential

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/exec-server/exec-server/internal/secret"
)

// fixed is a token that stays what it is.
type fixed struct {
	lasting
	token  secret.Secret
	rule   func(*url.URL) error
	scoped bool
	place  string
}

func (f *fixed) Authorize(_ context.Context, r *http.Request, _ []byte) error {
	bearer(r, f.token)
	return nil
}

func (f *fixed) Allows(base *url.URL) error { return f.rule(base) }
func (f *fixed) Scoped() bool               { return f.scoped }

// Place implements Placed.
func (f *fixed) Place() string { return f.place }

// APIKey is a key of OpenAI's API. It goes to OpenAI and to loopback only.
func APIKey(key string) (Source, error) { return apiKey(key, "") }

func apiKey(key, place string) (Source, error) {
	token, err := secret.Token(strings.TrimSpace(key))
	if err != nil {
		return nil, fmt.Errorf("API key: %w", err)
	}
	return &fixed{token: token, rule: apiKeyRule, place: place}, nil
}

// Bearer is a token that is known. It goes to any registry over https, and over
// http to loopback.
func Bearer(token string) (Source, error) {
	t, err := secret.Token(strings.TrimSpace(token))
	if err != nil {
		return nil, fmt.Errorf("bearer token: %w", err)
	}
	return &fixed{token: t, rule: secureRule}, nil
}

// Env is the token in an environment variable, read now. It goes where Bearer goes.
func Env(name string) (Source, error) {
	text, set := os.LookupEnv(name)
	if !set {
		return nil, fmt.Errorf("the server has no variable %s (it is read from the daemon's environment)", name)
	}
	token, err := secret.Token(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("bearer token in %s: %w", name, err)
	}
	return &fixed{token: token, rule: secureRule, place: "the variable " + name}, nil
}

// bearer puts a token on a request.
func bearer(r *http.Request, token secret.Secret) {
	r.Header.Set("Authorization", "Bearer "+token.Reveal())
}
