package masking

import (
	"encoding/pem"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const certificate = "CERTIFICATE"

// bundles are where distributions have the certificates that programs trust: the
// first that is there counts.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/cert.pem",
	"/etc/ssl/ca-bundle.pem",
}

// maxBundle bounds a bundle in bytes. That of Mozilla has a quarter of a million.
const maxBundle = 4 << 20

// bundle is what a command trusts that has its proxy's CA: that, and what it would
// trust without it. That is a file that is named, of which the first that is there
// counts, or else the image's. Of a file that a command could have exchanged nothing
// but certificates gets anywhere.
func bundle(ca string, named ...string) (string, error) {
	for _, name := range append(named, bundles...) {
		if name == "" {
			continue
		}
		text, err := certificates(name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			continue
		}
		return text + ca, err
	}
	return ca, nil
}

func certificates(name string) (string, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", os.ErrNotExist
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxBundle+1))
	if err != nil || len(rest) > maxBundle {
		return "", errors.Join(errors.New("the certificates that are trusted are too many"), err)
	}
	var out []byte
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return string(out), nil
		}
		if block.Type == certificate {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: certificate, Bytes: block.Bytes})...)
		}
	}
}
