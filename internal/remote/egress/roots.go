package egress

import (
	"crypto/x509"
	"fmt"
	"os"
)

// roots are the certificates that TLS trusts: nil for the system's, or those with
// the ones of the file that the option or the first variable names.
func roots(file string, getenv func(string) string) (*x509.CertPool, error) {
	by := "the CA file"
	for _, name := range []string{"CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"} {
		if file == "" {
			file, by = getenv(name), name
		}
	}
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", by, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read %s: %s: there is no certificate in PEM in it", by, file)
	}
	return pool, nil
}
