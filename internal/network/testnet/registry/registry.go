// Package registry fills the internet of tests with what tools of developers fetch
// from: a package "hello-exec" for each of pip, npm, apt, go and cargo, and a
// repository for git, on the hosts where the tools look for them.
package registry

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/exec-server/exec-server/internal/network/testnet"
)

// What the packages are called, and what their programs print.
const (
	Name     = "hello-exec"
	Version  = "1.0.0"
	Greeting = "hello from the registry"
)

// Hosts are the names that have an answer, by tool.
var Hosts = map[string][]string{
	"pip":   {"pypi.org", "files.pythonhosted.org"},
	"npm":   {"registry.npmjs.org"},
	"apt":   {"deb.debian.org"},
	"go":    {"proxy.golang.org"},
	"cargo": {"index.crates.io", "static.crates.io"},
	"git":   {"github.com"},
}

// Address is where all of them are.
var Address = netip.MustParseAddr("151.101.64.223")

// Serve starts them. Git needs its own program on this machine.
func Serve(t testing.TB, n *testnet.Internet) {
	t.Helper()
	for _, hosts := range Hosts {
		for _, host := range hosts {
			n.DNS.Set(host, time.Minute, Address.String())
		}
	}
	for host, files := range map[string]map[string][]byte{
		"pypi.org":               pythonIndex(),
		"files.pythonhosted.org": pythonFiles(),
		"registry.npmjs.org":     npmFiles(),
		"deb.debian.org":         debianFiles(),
		"proxy.golang.org":       goFiles(),
		"index.crates.io":        cargoIndex(),
		"static.crates.io":       cargoFiles(),
	} {
		n.Web.Handle(host, serve(files))
	}
	n.Web.Handle("github.com", gitServer(t))
}

// serve answers with files by their paths; what ends in "/" is a page.
func serve(files map[string][]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/"):
			w.Header().Set("Content-Type", "text/html")
		case bytes.HasPrefix(data, []byte("{")):
			w.Header().Set("Content-Type", "application/json")
		default:
			w.Header().Set("Content-Type", "application/octet-stream")
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}

// file is one in an archive.
type file struct {
	name, text string
	mode       int64
}

// tarball is a compressed tar of the files and of the directories that they are in.
func tarball(files ...file) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	made := map[string]bool{}
	for _, f := range files {
		for i, c := range f.name {
			if dir := f.name[:i+1]; c == '/' && !made[dir] {
				must(w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}))
				made[dir] = true
			}
		}
		must(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.text))}))
		_, err := w.Write([]byte(f.text))
		must(err)
	}
	must(w.Close())
	must(z.Close())
	return buf.Bytes()
}

func zipped(files ...file) []byte {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, f := range files {
		one, err := w.Create(f.name)
		must(err)
		_, err = one.Write([]byte(f.text))
		must(err)
	}
	must(w.Close())
	return buf.Bytes()
}

// must is for what cannot fail: archives in memory.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
