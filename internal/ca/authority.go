// Package ca makes certificate authorities that one environment or one command trusts,
// and the certificates of hosts that they sign.
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"sync"
	"time"
)

const (
	// Life is how long an authority is valid: longer than any environment lives. Nobody
	// outside trusts it.
	Life = 20 * 365 * 24 * time.Hour
	// skew is how far the clocks of those who check a certificate may be behind.
	skew = 24 * time.Hour

	blockCertificate = "CERTIFICATE"
	blockKey         = "PRIVATE KEY"
)

// Authority is a CA. It has no constraint of names: what it is for may change, and
// nobody but its environment or command trusts it.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// leaf is the key of all certificates that it signs. It is not kept.
	leaf *ecdsa.PrivateKey

	mu sync.Mutex
	// mu guards leafs, by host.
	leafs map[string]*tls.Certificate
}

// New makes a CA of that name, and returns its certificate and its key in PEM.
func New(name string, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"exec-server"}, CommonName: name[:min(len(name), 64)]}, // X.520's bound
		NotBefore: now.Add(-skew), NotAfter: now.Add(Life),
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

// Parse reads what New returned. Errors tell nothing of the key.
func Parse(text []byte) (*Authority, error) {
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

// PEM is the certificate, for those who are to trust it.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: a.cert.Raw})
}
