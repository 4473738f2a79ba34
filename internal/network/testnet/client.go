package testnet

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
)

// Client makes HTTP requests from the host to an address, whatever the URL says,
// and trusts the CA.
func (n *Internet) Client(to netip.Addr) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: n.CA.Pool()}, ForceAttemptHTTP2: true, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return n.Host.DialContext(ctx, network, net.JoinHostPort(to.String(), port))
		},
	}}
}
