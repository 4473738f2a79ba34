package httpclient

import (
	"crypto/x509"
	"os"
)

// extraRoots are the certificates that TLS trusts: nil for the system's, or
// those with the ones of the file that CODEX_CA_CERTIFICATE names, as the
// reference has it. SSL_CERT_FILE is the library's.
func extraRoots() *x509.CertPool {
	file := os.Getenv("CODEX_CA_CERTIFICATE")
	if file == "" {
		return nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	roots.AppendCertsFromPEM(pem)
	return roots
}
