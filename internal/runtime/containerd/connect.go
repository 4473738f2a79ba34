package containerd

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
)

// connectTimeout bounds the first answer of a containerd.
const connectTimeout = 5 * time.Second

// Connect returns a client of the containerd that listens on the unix socket:
// an existing containerd, or the Server of another process. It must be 1.7 or
// newer. An empty namespace is DefaultNamespace.
func Connect(ctx context.Context, address, namespace string) (*client.Client, error) {
	if namespace == "" {
		namespace = DefaultNamespace
	}
	// The client itself would wait for a socket that is not there.
	probe, err := net.DialTimeout("unix", address, connectTimeout)
	if err != nil {
		return nil, fmt.Errorf("no containerd answers at %s: %w", address, err)
	}
	probe.Close()
	c, err := client.New(address, client.WithDefaultNamespace(namespace), client.WithTimeout(connectTimeout))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd at %s: %w", address, err)
	}
	ctx, cancel := context.WithTimeout(namespaces.WithNamespace(ctx, namespace), connectTimeout)
	defer cancel()
	version, err := c.Version(ctx)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("no containerd answers at %s: %w", address, err)
	}
	if !newEnough(version.Version) {
		c.Close()
		return nil, fmt.Errorf("the containerd at %s is version %s; it must be 1.7 or newer", address, version.Version)
	}
	return c, nil
}

// newEnough tells whether the version, as in "v1.7.22" or "1.6.20~ds1", is at
// least 1.7.
func newEnough(version string) bool {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return errA == nil && errB == nil && (a > 1 || a == 1 && b >= 7)
}
