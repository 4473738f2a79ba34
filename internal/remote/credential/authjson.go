package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/exec-server/exec-server/internal/secret"
)

// maxAuthJSON bounds auth.json, in bytes.
const maxAuthJSON = 1 << 20

// errNoLogin is the reference's, with one way more.
var errNoLogin = errors.New("remote exec-server registration requires ChatGPT authentication or API key authentication; run `codex login` or set CODEX_API_KEY, or give --registration-bearer-stdin")

// login is what auth.json holds.
type login struct {
	token   secret.Secret
	account string // of ChatGPT, "" if unknown
	chatGPT bool
}

type authJSON struct {
	notice
	path string
}

// AuthJSON is the login that codex keeps in auth.json of its home: an API key,
// which goes where APIKey goes, or an account of ChatGPT, whose token goes to any
// registry, as the reference sends it. The file is read anew for each request, and
// watched until ctx ends. Tokens that expire are renewed by codex alone.
func AuthJSON(ctx context.Context, codexHome string) Source {
	a := &authJSON{path: filepath.Join(codexHome, "auth.json")}
	go poll(ctx, a.path, maxAuthJSON, &a.notice)
	return a
}

func (a *authJSON) read() (*login, error) {
	text, err := secret.File(a.path, maxAuthJSON)
	if err != nil {
		return nil, &unavailable{fmt.Errorf("%w (%w)", errNoLogin, err)}
	}
	l, err := parseAuthJSON(text)
	if err != nil {
		return nil, &unavailable{fmt.Errorf("%w (%s: %w)", errNoLogin, a.path, err)}
	}
	return l, nil
}

// parseAuthJSON finds the login. Its errors have nothing of the text.
func parseAuthJSON(text []byte) (*login, error) {
	var j struct {
		Mode   string  `json:"auth_mode"`
		APIKey *string `json:"OPENAI_API_KEY"`
		Tokens *struct {
			Access  string `json:"access_token"`
			Account string `json:"account_id"`
		} `json:"tokens"`
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, errors.New("it is not the JSON of a login")
	}
	mode := strings.ToLower(j.Mode)
	if mode == "" {
		if mode = "chatgpt"; j.APIKey != nil {
			mode = "apikey"
		}
	}
	switch {
	case mode == "apikey" && j.APIKey != nil:
		token, err := secret.Token(strings.TrimSpace(*j.APIKey))
		if err != nil {
			return nil, fmt.Errorf("API key: %w", err)
		}
		return &login{token: token}, nil
	case mode == "chatgpt" && j.Tokens != nil:
		token, err := secret.Token(j.Tokens.Access)
		if err != nil {
			return nil, fmt.Errorf("access token: %w", err)
		}
		if !isHeaderValue(j.Tokens.Account) {
			return nil, errors.New("account id: it has other than visible ASCII characters")
		}
		return &login{token: token, account: j.Tokens.Account, chatGPT: true}, nil
	}
	return nil, errors.New("there is no login in it that can be used")
}

func isHeaderValue(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

func (a *authJSON) Authorize(_ context.Context, r *http.Request, _ []byte) error {
	l, err := a.read()
	if err != nil {
		return err
	}
	// The login may have become an API key since Allows was asked.
	if err := l.allows(&url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host}); err != nil {
		return &unavailable{err}
	}
	bearer(r, l.token)
	if l.account != "" {
		r.Header.Set(accountHeader, l.account)
	}
	return nil
}

func (l *login) allows(base *url.URL) error {
	if l.chatGPT {
		return nil
	}
	return apiKeyRule(base)
}

func (a *authJSON) Allows(base *url.URL) error {
	l, err := a.read()
	if err != nil {
		return nil // Authorize asks again when there is one
	}
	return l.allows(base)
}

// Place implements Placed.
func (a *authJSON) Place() string         { return a.path }
func (a *authJSON) Scoped() bool          { return false }
func (a *authJSON) Done() <-chan struct{} { return nil }
func (a *authJSON) Err() error            { return nil }
