package masking

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
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

// Authority is the CA of one command. Its key is nowhere but in the memory of the
// agent and of the command's proxy, and ends with them.
type Authority struct {
	Certificate string `json:"certificate"` // PEM
	Key         string `json:"key"`         // PEM, of PKCS 8

	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu     sync.Mutex // guards leaves
	leaves map[string]*tls.Certificate
}

const (
	// before is how far the clock of a program may be behind.
	before   = 24 * time.Hour
	validity = 365 * 24 * time.Hour
	// maxLeaves is how many hosts' certificates are kept.
	maxLeaves = 256
)

// newAuthority makes a CA.
func newAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "exec-server credential masking"},
		NotBefore: now.Add(-before), NotAfter: now.Add(validity),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &Authority{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: certificate, Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
	}, nil
}

func serialNumber() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
}

var errAuthority = errors.New("masked credentials: not a CA")

// load reads the CA's own parts.
func (a *Authority) load() error {
	pair, err := tls.X509KeyPair([]byte(a.Certificate), []byte(a.Key))
	if err != nil {
		return fmt.Errorf("masked credentials: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || pair.Leaf == nil || !pair.Leaf.IsCA {
		return errAuthority
	}
	a.cert, a.key, a.leaves = pair.Leaf, key, map[string]*tls.Certificate{}
	return nil
}

// Leaf is a certificate for a host.
func (a *Authority) Leaf(host policy.Host) (*tls.Certificate, error) {
	name := host.String()
	a.mu.Lock()
	defer a.mu.Unlock()
	if leaf := a.leaves[name]; leaf != nil {
		return leaf, nil
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	cert := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "masked"}, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if addr := host.Addr(); addr.IsValid() {
		cert.IPAddresses = []net.IP{addr.AsSlice()}
	} else {
		cert.DNSNames = []string{name}
	}
	// The key is the CA's: who has one has the other.
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	if len(a.leaves) >= maxLeaves {
		clear(a.leaves)
	}
	leaf := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
	a.leaves[name] = leaf
	return leaf, nil
}
