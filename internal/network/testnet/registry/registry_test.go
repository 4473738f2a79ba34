package registry

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/internal/network/testnet"
)

func get(t *testing.T, n *testnet.Internet, url string) []byte {
	t.Helper()
	resp, err := n.Client(Address).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return data
}

// Whether the tools like it is tested with the tools, from inside a sandbox. Here is
// what can be told without.
func TestFiles(t *testing.T) {
	n := testnet.New(t)
	Serve(t, n)
	for url, want := range map[string]string{
		"https://pypi.org/simple/hello-exec/":                                      wheelName,
		"https://registry.npmjs.org/hello-exec":                                    "hello-exec-1.0.0.tgz",
		"http://deb.debian.org/debian/dists/test/Release":                          "main/binary-amd64/Packages",
		"http://deb.debian.org/debian/dists/test/main/binary-amd64/Packages":       "Filename: pool/main/h/hello-exec",
		"https://proxy.golang.org/example.com/hello/@latest":                       "v1.0.0",
		"https://index.crates.io/config.json":                                      "static.crates.io",
		"https://index.crates.io/he/ll/hello-exec":                                 "cksum",
		"https://github.com/test/hello-exec.git/info/refs?service=git-upload-pack": "refs/heads/main",
	} {
		if got := string(get(t, n, url)); !strings.Contains(got, want) {
			t.Errorf("%s has no %q: %q", url, want, got)
		}
	}
	whl := get(t, n, "https://files.pythonhosted.org/packages/"+wheelName)
	if z, err := zip.NewReader(bytes.NewReader(whl), int64(len(whl))); err != nil || len(z.File) != 4 {
		t.Errorf("the wheel: %v", err)
	}
	deb := filepath.Join(t.TempDir(), "hello.deb")
	if err := os.WriteFile(deb, get(t, n, "http://deb.debian.org/debian/pool/main/h/hello-exec/hello-exec_1.0.0_all.deb"), 0o600); err != nil {
		t.Fatal(err)
	}
	if dpkg, err := exec.LookPath("dpkg-deb"); err == nil {
		out, err := exec.Command(dpkg, "--contents", deb).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("./usr/bin/hello-exec")) {
			t.Errorf("the deb: %v: %s", err, out)
		}
	}
}
