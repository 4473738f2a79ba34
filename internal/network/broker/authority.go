package broker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/exec-server/exec-server/internal/secret"
)

const (
	// authorityFile has the certificate and the key, so that there is never one without
	// the other.
	authorityFile = "authority.pem"
	// authorityLife is longer than that of environments. Nobody outside trusts it.
	authorityLife = 20 * 365 * 24 * time.Hour
	// skew is how far the clocks of those who check a certificate may be behind.
	skew = time.Hour

	blockCertificate = "CERTIFICATE"
	blockKey         = "PRIVATE KEY"
)

// Authority is the CA of an environment. It has no constraint of names: a policy can
// be changed, and nobody but the environment trusts it.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// leaf is the key of all certificates that it signs. It is not kept.
	leaf *ecdsa.PrivateKey

	mu sync.Mutex
	// mu guards leafs, by name.
	leafs map[string]*tls.Certificate
}

// OpenAuthority reads the CA that is kept in dir, or makes one and keeps it there, for
// its owner alone; name is the environment's.
func OpenAuthority(dir, name string) (*Authority, error) {
	path := filepath.Join(dir, authorityFile)
	text, err := secret.File(path, secret.Max)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = newAuthority(name, time.Now()); err == nil {
			err = keep(path, text)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the CA of %s: %w", name, err)
	}
	a, err := parseAuthority(text)
	if err != nil {
		return nil, fmt.Errorf("open the CA of %s: %s: %w", name, path, err)
	}
	return a, nil
}

// PEM is the certificate, for those who are to trust it.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: a.cert.Raw})
}

func newAuthority(name string, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	common := "exec-server, environment " + name
	template := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"exec-server"}, CommonName: common[:min(len(common), 64)]}, // X.520's bound
		NotBefore: now.Add(-skew), NotAfter: now.Add(authorityLife),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	secretKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: cert})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: blockKey, Bytes: secretKey})...), nil
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

func parseAuthority(text []byte) (*Authority, error) {
	cert, rest := pem.Decode(text)
	key, _ := pem.Decode(rest)
	if cert == nil || key == nil || cert.Type != blockCertificate || key.Type != blockKey {
		return nil, errors.New("it has not a certificate and its key")
	}
	c, err := x509.ParseCertificate(cert.Bytes)
	if err != nil {
		return nil, err
	}
	k, err := x509.ParsePKCS8PrivateKey(key.Bytes)
	if err != nil {
		return nil, errors.New("its key is none") // the library's error may tell of it
	}
	signer, ok := k.(*ecdsa.PrivateKey)
	if !ok || !signer.PublicKey.Equal(c.PublicKey) || !c.IsCA {
		return nil, errors.New("its key is not that of the certificate, or that is no CA's")
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: c, key: signer, leaf: leaf, leafs: map[string]*tls.Certificate{}}, nil
}
