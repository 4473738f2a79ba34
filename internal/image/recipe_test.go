package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exec-server/exec-server/images"
)

func TestRecipeName(t *testing.T) {
	r := Default()
	name := r.Name()
	if !strings.HasPrefix(name, "exec-server/default:") || len(name) != len("exec-server/default:")+12 {
		t.Error(name)
	}
	same, err := ParseRecipe(append([]byte("# a comment\n"), images.Default()...))
	if err != nil || same.Name() != name {
		t.Error(same.Name(), err)
	}
	r.Packages = append(r.Packages, "vim")
	if r.Name() == name {
		t.Error("another package, but the same name")
	}
}

func TestParseRecipeErrors(t *testing.T) {
	text := string(images.Default())
	for _, test := range []struct{ old, new, want string }{
		{"version = 1", "version = 2", "version 2 is not known to this program; it reads version 1"},
		{"version = 1", "version = 1\ncolour = 1", "there is no key colour"},
		{"version = 1", "version = 'x'", "line 4: cannot decode TOML string"},
		{`"bookworm"`, `"book worm"`, `suite: "book worm" cannot be used`},
		{`"bash",`, `"bash; reboot",`, `packages: "bash; reboot" cannot be used`},
		{`"/usr/share/man/*"`, `"$(reboot)"`, `exclude, keep: "$(reboot)" cannot be used`},
		{`"agent"`, `"root"`, `user.name: "root" cannot be used`},
		{`uid = 1000`, `uid = 0`, `user.uid: "0" cannot be used`},
		{`"/workspace"`, `"/a/../b"`, `config.workdir: "/a/../b" cannot be used`},
		{`"LANG=C.UTF-8"`, `"LANG"`, `config.env: "LANG" cannot be used`},
		{`"exec-server/default"`, `"Exec"`, `name: "Exec" cannot be used`},
	} {
		if !strings.Contains(text, test.old) {
			t.Fatalf("there is no %s", test.old)
		}
		_, err := ParseRecipe([]byte(strings.Replace(text, test.old, test.new, 1)))
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", test.new, err, test.want)
		}
	}
}

func TestHostSources(t *testing.T) {
	etc := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(etc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := hostSources(etc, "bookworm"); got != "" {
		t.Error(got)
	}
	write("sources.list.d/vendor.list", `
deb [arch=amd64 signed-by=/etc/apt/keyrings/vendor.asc] https://dl.vendor.test/linux/debian bookworm main
deb https://apt.vendor.test bookworm main
deb https://dl.vendor.test/linux/debian bookworm stable
`)
	write("sources.list.d/other.sources.off", "Types: deb\nURIs: http://m.test/debian\nSuites: bookworm\nComponents: main\n")
	write("sources.list.d/security.sources", "Types: deb\nURIs: http://m.test/debian-security\nSuites: bookworm-security\nComponents: main\n")
	if got := hostSources(etc, "bookworm"); got != "" {
		t.Errorf("the suite itself is not there, but: %s", got)
	}
	write("sources.list", `# comment
deb	http://m.test/debian bookworm main contrib # more
deb-src http://m.test/debian bookworm main
deb cdrom:[Debian]/ bookworm main
deb file:/srv/debian bookworm main
deb http://m.test/debian trixie main
deb [ signed-by=/usr/share/keyrings/debian-archive-keyring.gpg ] http://m.test/debian bookworm-updates main
`)
	write("sources.list.d/debian.sources", `Types: deb deb-src
# http://snapshot.test/
URIs: http://m.test/debian/ https://n.test/x/debian/
 mirror+file:/etc/apt/mirrors/debian.list
Suites: bookworm bookworm-backports
Components: main non-free
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBA==
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
Enabled: no
URIs: http://off.test/debian
Suites: bookworm
Components: main
`)
	want := `Types: deb
URIs: http://m.test/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://m.test/debian
Suites: bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://m.test/debian/ https://n.test/x/debian/
Suites: bookworm
Components: main
Signed-By: 
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBA==
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
URIs: http://m.test/debian-security
Suites: bookworm-security
Components: main

`
	if got := hostSources(etc, "bookworm"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
