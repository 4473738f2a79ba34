package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const ours = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n"

// image makes a root with files and, for what begins with "-> ", links.
func image(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if to, ok := strings.CutPrefix(text, "-> "); err == nil && ok {
			err = os.Symlink(to, at)
		} else if err == nil {
			err = os.WriteFile(at, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func trusted(t *testing.T, root string) (bundle string, err error) {
	t.Helper()
	dir := t.TempDir()
	ca, all := filepath.Join(dir, "ca"), filepath.Join(dir, "all")
	if err := os.WriteFile(ca, []byte(ours), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ALL_CERTIFICATES", all)
	if err := trustCA(root, ca, all); err != nil {
		return "", err
	}
	text, err := os.ReadFile(os.Getenv("ALL_CERTIFICATES"))
	if errors.Is(err, os.ErrNotExist) && os.Getenv("ALL_CERTIFICATES") == "" {
		return "", nil // nothing names it, and it is not there
	}
	return string(text), err
}

func TestCertificatesOfImages(t *testing.T) {
	const debian = "etc/ssl/certs/ca-certificates.crt"
	for name, tt := range map[string]struct {
		files, want map[string]string
		bundle      string
	}{
		"none at all":   {nil, map[string]string{debian: ours}, ""},
		"no bundle":     {map[string]string{"etc/ssl/openssl.cnf": "x"}, map[string]string{debian: ours, "etc/ssl/openssl.cnf": "x"}, ""},
		"debian":        {map[string]string{debian: "theirs"}, map[string]string{debian: "theirs\n" + ours}, "theirs\n" + ours},
		"red hat, suse": {map[string]string{"etc/pki/tls/certs/ca-bundle.crt": "a\n", "etc/ssl/ca-bundle.pem": "b\n"}, map[string]string{"etc/pki/tls/certs/ca-bundle.crt": "a\n\n" + ours, "etc/ssl/ca-bundle.pem": "b\n\n" + ours}, "a\n\n" + ours},
		"alpine": {
			map[string]string{debian: "a\n", "etc/ssl/cert.pem": "-> certs/ca-certificates.crt"},
			map[string]string{debian: "a\n\n" + ours}, "a\n\n" + ours,
		},
		"absolute links": {
			map[string]string{debian: "-> /nix/store/x/bundle", "nix/store/x/bundle": "n\n"},
			map[string]string{"nix/store/x/bundle": "n\n\n" + ours}, "n\n\n" + ours,
		},
		"links out": {
			map[string]string{debian: "-> ../../../../../../tmp/x", "tmp/x": "in the root\n"},
			map[string]string{"tmp/x": "in the root\n\n" + ours}, "in the root\n\n" + ours,
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := image(t, tt.files)
			bundle, err := trusted(t, root)
			if err != nil || bundle != tt.bundle {
				t.Errorf("the bundle is %q, %v", bundle, err)
			}
			for file, want := range tt.want {
				if got, err := os.ReadFile(filepath.Join(root, file)); err != nil || string(got) != want {
					t.Errorf("%s is %q, %v", file, got, err)
				}
			}
		})
	}
}

func TestBundlesThatAreNone(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a directory":    {"etc/ssl/cert.pem/x": "x"},
		"a loop":         {"etc/ssl/cert.pem": "-> cert.pem"},
		"/etc is a file": {"etc": "x"},
	} {
		if _, err := trusted(t, image(t, files)); err == nil {
			t.Errorf("%s: it is no error", name)
		}
	}
}
