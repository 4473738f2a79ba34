package e2e

import (
	"archive/tar"
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/network/testnet"
	"github.com/exec-server/exec-server/internal/network/testnet/registry"
	"github.com/exec-server/exec-server/internal/testroot"
)

// The image of testdata/tools.toml is made once for all tests that want it.
// EXEC_SERVER_E2E_TOOLS names a directory that keeps it for the next run.

// toolsRoot is a root with that image, for one test at a time. The image is that of
// the default profile, whose commands run as root.
func toolsRoot(t *testing.T, config, policy string) *root {
	t.Helper()
	testroot.Need(t)
	if testing.Short() {
		t.Skip("the image of developers' tools takes a minute to make")
	}
	dir, image := shared.tools(t)
	r := &root{t: t, dir: dir, config: filepath.Join(dir, fmt.Sprint("tools", serial.Add(1), ".toml"))}
	text := fmt.Sprintf("version = 1\nroot = %q\n%s[profile.default]\nimage = %q\nuser = \"root\"\n[profile.default.network]\n%s",
		filepath.Join(dir, "root"), config, image, policy)
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.Remove(r.config), os.RemoveAll(filepath.Join(dir, "root", "environments"))); err != nil {
			t.Error(err)
		}
	})
	return r
}

// tools returns the directory of the root that has the image, and the image's name.
func (s *sharedServers) tools(t *testing.T) (dir, image string) {
	t.Helper()
	if s.toolsImage != "" {
		return s.toolsRoot, s.toolsImage
	}
	if s.toolsRoot = os.Getenv("EXEC_SERVER_E2E_TOOLS"); s.toolsRoot == "" {
		s.toolsRoot = newRoot(&lasting{TB: t, all: s}, "").dir
	}
	begun := time.Now()
	cmd := exec.Command(bin, "--root", filepath.Join(s.toolsRoot, "root"), "image", "build", "--recipe", "testdata/tools.toml")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("image build: %v\n%s", err, &errs)
	}
	t.Logf("the image is there after %v", time.Since(begun).Round(time.Second))
	s.toolsImage = strings.TrimSpace(string(out))
	return s.toolsRoot, s.toolsImage
}

// Where Go and npm are fetched from, inside the sandbox: neither is in the image.
const (
	goHost = "go.dev"
	goURL  = "https://go.dev/dl/go.tar"
	npmURL = "https://registry.npmjs.org/npm/-/npm-10.9.9.tgz"
	npmSum = "1g+6jLQvaIuB4zwvHL7yrXuXcWZwDsCtBX8bbWDqbvJSSr9nPiDDWTHNgwXR27iIcTTW7v3A57hDW9RYv2W4Yg=="
)

// serveTools serves the two in the tests' internet.
func serveTools(t *testing.T, n *testnet.Internet) {
	t.Helper()
	npm := fetchNPM(t)
	n.DNS.Set(goHost, time.Minute, registry.Address.String())
	n.Web.Handle(goHost, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := writeGo(w); err != nil {
			t.Errorf("serve this machine's Go: %v", err)
		}
	}))
	next := n.Web.Handler("registry.npmjs.org")
	n.Web.Handle("registry.npmjs.org", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(npmURL, r.URL.Path) {
			_, _ = w.Write(npm)
		} else {
			next.ServeHTTP(w, r)
		}
	}))
}

// fetchNPM fetches npm, once for this checkout, as npm itself would.
func fetchNPM(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join("..", "..", ".cache", filepath.Base(npmURL))
	data, err := os.ReadFile(file)
	if err != nil {
		answer, err := http.Get(npmURL)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if data, err = io.ReadAll(io.LimitReader(answer.Body, 64<<20)); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", npmURL, answer.Status, err)
		}
	}
	if sum := sha512.Sum512(data); base64.StdEncoding.EncodeToString(sum[:]) != npmSum {
		t.Fatalf("%s is not what it was", npmURL)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
		_ = os.WriteFile(file, data, 0o644) // without it, it is fetched again
	}
	return data
}

// writeGo writes the tar of what of this machine's Go builds a package.
func writeGo(w io.Writer) error {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	top, tool := strings.TrimSpace(string(out)), "pkg/tool/"+runtime.GOOS+"_"+runtime.GOARCH+"/"
	archive := tar.NewWriter(w)
	for _, part := range []string{"VERSION", "go.env", "bin/go", tool + "compile", tool + "asm", tool + "link", "pkg/include", "src"} {
		err := filepath.WalkDir(filepath.Join(top, part), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "cmd"):
				return filepath.SkipDir
			case d.IsDir() || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			return addFile(archive, top, path)
		})
		if err != nil {
			return err
		}
	}
	return archive.Close()
}

func addFile(archive *tar.Writer, top, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: "go" + strings.TrimPrefix(path, top), Mode: int64(info.Mode().Perm()), Size: info.Size()}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}
