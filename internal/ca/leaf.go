package ca

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"time"
)

const (
	// leafLife is how long a certificate of a host is valid, the skew aside. It is
	// renewed after half of that.
	leafLife = 24 * time.Hour
	// maxLeafs bounds those that are kept. Only hosts with a credential have one.
	maxLeafs = 256
)

// Leaf is a certificate for a host, which is a name or an address.
func (a *Authority) Leaf(host string, now time.Time) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leafs[host]; c != nil && now.Before(c.Leaf.NotAfter.Add(-leafLife/2)) {
		return c, nil
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"exec-server"}},
		NotBefore: now.Add(-skew), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &a.leaf.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", host, err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", host, err)
	}
	for old := range a.leafs {
		if len(a.leafs) < maxLeafs {
			break
		}
		delete(a.leafs, old) // any one: it is made again when it is wanted
	}
	c := &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: a.leaf, Leaf: leaf}
	a.leafs[host] = c
	return c, nil
}
