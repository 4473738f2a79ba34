package containerd

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/exec-server/exec-server/internal/network/broker"
)

// Where a container that is to trust its CA has the CA's certificate, and all
// certificates that it trusts.
const (
	guestCA     = guestDir + "/ca.pem"
	guestBundle = guestDir + "/ca-bundle.pem"
)

// trust are the variables by which programs that bring certificates of their own
// are told of others. The first is for what is added, the others are for all.
var trust = []string{
	"NODE_EXTRA_CA_CERTS=" + guestCA,
	"SSL_CERT_FILE=" + guestBundle,
	"REQUESTS_CA_BUNDLE=" + guestBundle,
	"CURL_CA_BUNDLE=" + guestBundle,
	"PIP_CERT=" + guestBundle,
	"AWS_CA_BUNDLE=" + guestBundle,
	"GIT_SSL_CAINFO=" + guestBundle,
	"CARGO_HTTP_CAINFO=" + guestBundle,
}

// authorityIn is the directory of the CA, of which no sandbox sees anything.
func authorityIn(dir string) string { return filepath.Join(dir, "ca") }

// certificate puts the certificate of the environment's CA where the container
// finds it, if its policy intercepts. The key stays where it is.
func (r *Runtime) certificate(p *plan) error {
	if !p.spec.Network.Intercept {
		return nil
	}
	dir := authorityIn(p.env.dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("network: the environment's CA: %w", err)
	}
	ca, err := broker.OpenAuthority(dir, p.spec.Name)
	if err != nil {
		return fmt.Errorf("network: the environment's CA: %w", err)
	}
	path := filepath.Join(string(p.state), filepath.Base(guestCA))
	if err := os.WriteFile(path, ca.PEM(), 0o444); err != nil {
		return err
	}
	return os.Chmod(path, 0o444) // whatever the umask
}
