package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/exec-server/exec-server/internal/ca"
	"github.com/exec-server/exec-server/internal/secret"
)

// authorityFile has the certificate and the key, so that there is never one without
// the other.
const authorityFile = "authority.pem"

// Authority is the CA of an environment.
type Authority struct{ *ca.Authority }

// OpenAuthority reads the CA that is kept in dir, or makes one and keeps it there, for
// its owner alone; name is the environment's.
func OpenAuthority(dir, name string) (*Authority, error) {
	path := filepath.Join(dir, authorityFile)
	text, err := secret.File(path, secret.Max)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = ca.New("exec-server, environment "+name, time.Now()); err == nil {
			err = keep(path, text)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the CA of %s: %w", name, err)
	}
	a, err := ca.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("open the CA of %s: %s: %w", name, path, err)
	}
	return &Authority{a}, nil
}

// keep writes a file that is there as a whole or not at all.
func keep(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+authorityFile+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // when it has been renamed there is none
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// config is for a connection to name. Each connection has its own, so that tickets
// would be of no use.
func (a *Authority) config(name string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if !strings.EqualFold(h.ServerName, name) {
				return nil, errors.New("the client has changed the name that it wants")
			}
			return a.Leaf(name, time.Now())
		},
	}
}
