package broker

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// leafLife is how long a certificate of a host is valid. It is renewed after half
	// of that.
	leafLife = 24 * time.Hour
	// maxLeafs bounds those that are kept. Only hosts with a credential have one.
	maxLeafs = 256
)

// config is for a connection to name. Each connection has its own, so that tickets
// would be of no use.
func (a *Authority) config(name string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if !strings.EqualFold(h.ServerName, name) {
				return nil, errors.New("the client has changed the name that it wants")
			}
			return a.certificate(name, time.Now())
		},
	}
}

// certificate is one for a name.
func (a *Authority) certificate(name string, now time.Time) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leafs[name]; c != nil && now.Before(c.Leaf.NotAfter.Add(-leafLife/2)) {
		return c, nil
	}
	template := &x509.Certificate{
		Subject: pkix.Name{Organization: []string{"exec-server"}}, DNSNames: []string{name},
		NotBefore: now.Add(-skew), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &a.leaf.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", name, err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", name, err)
	}
	for old := range a.leafs {
		if len(a.leafs) < maxLeafs {
			break
		}
		delete(a.leafs, old) // any one: it is made again when it is wanted
	}
	c := &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: a.leaf, Leaf: leaf}
	a.leafs[name] = c
	return c, nil
}
