package testnet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

// CA makes certificates for any name.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu   sync.Mutex // guards made
	made map[string]*tls.Certificate
}

func newCA() (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "testnet"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make a CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &CA{cert: cert, key: key, made: map[string]*tls.Certificate{}}, nil
}

// PEM is the certificate that clients have to trust.
func (c *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw})
}

// Pool has that certificate, and no other.
func (c *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.cert)
	return pool
}

// Certificate is one for a name or an address.
func (c *CA) Certificate(name string) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made := c.made[name]; made != nil {
		return made, nil
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(c.made) + 2)), Subject: pkix.Name{CommonName: name},
		NotBefore: c.cert.NotBefore, NotAfter: c.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, &c.key.PublicKey, c.key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %q: %w", name, err)
	}
	c.made[name] = &tls.Certificate{Certificate: [][]byte{der, c.cert.Raw}, PrivateKey: c.key}
	return c.made[name], nil
}

// Config is that of a server which has a certificate for whatever name it is called
// by, and for its address where it is called by none.
func (c *CA) Config() *tls.Config {
	return &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		name := hello.ServerName
		if name == "" {
			name, _, _ = net.SplitHostPort(hello.Conn.LocalAddr().String())
		}
		return c.Certificate(name)
	}}
}
