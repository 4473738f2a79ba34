package credential

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// FromEnvironment is what counts if nothing else is said: the key in CODEX_API_KEY,
// else codex's own login in CODEX_HOME or ~/.codex. If there is neither, the login
// is waited for.
func FromEnvironment(ctx context.Context) (Source, error) {
	if key := strings.TrimSpace(os.Getenv("CODEX_API_KEY")); key != "" {
		s, err := apiKey(key, "CODEX_API_KEY")
		if err != nil {
			return nil, fmt.Errorf("CODEX_API_KEY: %w", err)
		}
		return s, nil
	}
	home := os.Getenv("CODEX_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("%w (%w)", errNoLogin, err)
		}
		home = filepath.Join(user, ".codex")
	}
	return AuthJSON(ctx, home), nil
}
