package registry

import (
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repository is the URL of a repository with a file README, which has the greeting.
const Repository = "https://github.com/test/" + Name + ".git"

// gitServer serves it over git's smart protocol, by git itself.
func gitServer(t testing.TB) http.Handler {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		// Whatever the user of this machine has configured is of no concern.
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=n@test", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=n@test"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	bare := filepath.Join("test", Name+".git")
	git("init", "-q", "-b", "main", "work")
	if err := os.WriteFile(filepath.Join(dir, "work", "README"), []byte(Greeting+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("-C", "work", "add", "README")
	git("-C", "work", "commit", "-q", "-m", "one")
	git("clone", "-q", "--bare", "work", bare)
	return &cgi.Handler{
		Path:   filepath.Join(git("--exec-path"), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"},
		Stderr: testWriter{t},
	}
}

// testWriter writes to a test's log.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("git-http-backend: %s", p)
	return len(p), nil
}
