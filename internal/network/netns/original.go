package netns

import (
	"errors"
	"net"
	"net/netip"
)

// Original is the address that the program connected to, of a connection that one of
// Namespace.TCP accepted. It is the gateway's if the program meant the listener.
func Original(c net.Conn) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.New("not there yet")
}
