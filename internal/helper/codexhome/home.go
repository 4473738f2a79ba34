package codexhome

import (
	"fmt"
	"os"
	"path/filepath"
)

// codexHome is $CODEX_HOME, which has to be a directory, or else .codex in the
// user's home directory, which need not be there.
func codexHome(home string) (string, error) {
	dir := os.Getenv("CODEX_HOME")
	if dir == "" {
		return filepath.Join(home, ".codex"), nil
	}
	switch st, err := os.Stat(dir); {
	case missing(err):
		return "", fmt.Errorf("CODEX_HOME points to %q, but that path does not exist", dir)
	case err != nil:
		return "", fmt.Errorf("CODEX_HOME points to %q: %s", dir, words(dir, err))
	case !st.IsDir():
		return "", fmt.Errorf("CODEX_HOME points to %q, but that path is not a directory", dir)
	}
	full, err := filepath.Abs(dir)
	if err == nil {
		full, err = filepath.EvalSymlinks(full)
	}
	if err != nil {
		return "", fmt.Errorf("CODEX_HOME points to %q: %s", dir, words(dir, err))
	}
	return full, nil
}

// canonical is a path without links, or as it is if it cannot be resolved.
func canonical(path string) string {
	if full, err := filepath.EvalSymlinks(path); err == nil {
		return full
	}
	return path
}
