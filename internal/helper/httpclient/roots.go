package httpclient

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/exec-server/exec-server/internal/proto"
)

const rootsAdvice = "If you set CODEX_CA_CERTIFICATE or SSL_CERT_FILE, ensure it points to a PEM file containing one or more CERTIFICATE blocks, or unset it to use system roots."

// roots are the certificates that TLS trusts: nil for the system's, or those with
// the ones of the file that a variable names. A file that cannot be used fails
// every request, as it does in the reference.
func roots(getenv func(string) string) (*x509.CertPool, error) {
	for _, name := range []string{"CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"} {
		file := getenv(name)
		if file == "" {
			continue
		}
		pem, err := os.ReadFile(file)
		if err != nil {
			what := err.Error()
			if no, ok := errors.AsType[syscall.Errno](err); ok {
				what = proto.ErrnoText(no)
			}
			return nil, fmt.Errorf("Failed to read CA certificate file %s selected by %s: %s. %s", file, name, what, rootsAdvice) //nolint:staticcheck // the reference's words
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("Failed to load CA certificates from %s selected by %s: no certificates found in PEM file. %s", file, name, rootsAdvice) //nolint:staticcheck // the same
		}
		return pool, nil
	}
	return nil, nil
}
