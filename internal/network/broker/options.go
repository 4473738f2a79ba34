// Package broker carries HTTP between a sandbox and the hosts that it may reach: each
// request is looked at, decided about, and written anew. Where a rule says so it adds
// a credential that the sandbox does not have, also to HTTPS, by a CA of the
// environment's own.
package broker

import (
	"context"
	"crypto/x509"
	"net"
	"net/netip"

	"github.com/exec-server/exec-server/internal/network/rules"
	"github.com/exec-server/exec-server/internal/secret"
)

// Options are what a connection is served with.
type Options struct {
	// To is what the client has connected to. Requests are for its port.
	To netip.AddrPort
	// Name is the name that the client said by TLS, in lower case: requests for others
	// are refused. ServeTLS needs it; Serve has none.
	Name string
	// Check decides about a request: once for each, before anything is sent. The host
	// is a name in lower case without a dot at its end, or an address, or "" if the
	// request (of HTTP/1.0) has none. Everything but rules.Allow refuses it.
	Check func(host string, port uint16, app rules.Protocol) rules.Decision
	// Begin is told of each request before that, and what it returns when the request is
	// over. If that is nil there is no room for the request. It may be nil itself.
	Begin func() (end func())
	// Decided is told what became of each request that Check was asked about, before
	// anything of it is sent; it may be nil. That is Check's decision, or
	// rules.NoSecret with the error of that, which has no secret.
	Decided func(host string, app rules.Protocol, d rules.Decision, err error)
	// Dial connects to a host that Check has allowed, at an address that belongs to it.
	// For a request without a host it gets the address of To.
	Dial func(ctx context.Context, host string, port uint16) (net.Conn, error)
	// Secret reads the secret of a credential. Its error is not shown to the sandbox.
	Secret func(context.Context, *rules.Credential) (secret.Secret, error)
	// Authority signs for Name, for ServeTLS.
	Authority *Authority
	// RootCAs are those whose certificates of hosts are believed; nil are the system's.
	RootCAs *x509.CertPool
	// Failed is told, for a log, what went wrong on the way to a host; it may be nil.
	// The errors have no secret, and may come from several goroutines.
	Failed func(host string, err error)
}
