package credential

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/exec-server/exec-server/internal/secret"
)

type file struct {
	notice
	path string
}

// File is the token in a file, with blanks around it or without, at most 16384
// bytes. It is read anew for each request, so that one renewed counts at once, and
// watched until ctx ends. It goes where Bearer goes.
func File(ctx context.Context, path string) Source {
	f := &file{path: path}
	go poll(ctx, path, secret.Max, &f.notice)
	return f
}

func (f *file) Authorize(_ context.Context, r *http.Request, _ []byte) error {
	text, err := secret.File(f.path, secret.Max)
	if err != nil {
		return &unavailable{fmt.Errorf("token file: %w", err)}
	}
	token, err := secret.Token(strings.TrimSpace(string(text)))
	if err != nil {
		return &unavailable{fmt.Errorf("token file %s: %w", f.path, err)}
	}
	bearer(r, token)
	return nil
}

func (f *file) Allows(base *url.URL) error { return secureRule(base) }

// Place implements Placed.
func (f *file) Place() string         { return f.path }
func (f *file) Scoped() bool          { return false }
func (f *file) Done() <-chan struct{} { return nil }
func (f *file) Err() error            { return nil }
