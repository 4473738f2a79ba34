package netproxy

import (
	"errors"
	"io"
	"net/netip"
	"syscall"
)

// handshake reads a client's greeting and its request. A client that does not
// offer to go without authentication is told so; nobody else who errs is.
func handshake(conn io.ReadWriter) (command byte, host string, port uint16, err error) {
	var b [257]byte
	if _, err = io.ReadFull(conn, b[:2]); err != nil || b[0] != socksVersion {
		return 0, "", 0, errSOCKS
	}
	methods := b[:b[1]]
	if _, err = io.ReadFull(conn, methods); err != nil {
		return 0, "", 0, err
	}
	chosen := byte(socksNoMethod)
	for _, m := range methods {
		if m == socksNoAuth {
			chosen = socksNoAuth
		}
	}
	if _, err = conn.Write([]byte{socksVersion, chosen}); err != nil || chosen == socksNoMethod {
		return 0, "", 0, errSOCKS
	}
	if _, err = io.ReadFull(conn, b[:3]); err != nil || b[0] != socksVersion {
		return 0, "", 0, errSOCKS
	}
	command = b[1]
	host, port, err = socksAddress(conn)
	return command, host, port, err
}

// socksAddress reads an address and a port.
func socksAddress(r io.Reader) (host string, port uint16, err error) {
	var b [255]byte
	if _, err = io.ReadFull(r, b[:1]); err != nil {
		return "", 0, err
	}
	kind, size := b[0], 4
	switch kind {
	case socksIPv4:
	case socksIPv6:
		size = 16
	case socksName:
		if _, err = io.ReadFull(r, b[:1]); err != nil {
			return "", 0, err
		}
		size = int(b[0])
	default:
		return "", 0, errSOCKS
	}
	if _, err = io.ReadFull(r, b[:size]); err != nil {
		return "", 0, err
	}
	if kind == socksName {
		host = string(b[:size])
	} else {
		addr, _ := netip.AddrFromSlice(b[:size])
		host = addr.String()
	}
	if _, err = io.ReadFull(r, b[:2]); err != nil {
		return "", 0, err
	}
	return host, uint16(b[0])<<8 | uint16(b[1]), nil
}

// socksReply is an answer with an address, 0.0.0.0:0 if it is not valid.
func socksReply(code byte, at netip.AddrPort) []byte {
	return appendSocksAddress([]byte{socksVersion, code, 0}, at)
}

func appendSocksAddress(b []byte, at netip.AddrPort) []byte {
	addr := at.Addr().Unmap()
	if !addr.IsValid() {
		addr = netip.IPv4Unspecified()
	}
	kind := byte(socksIPv4)
	if addr.Is6() {
		kind = socksIPv6
	}
	b = append(append(b, kind), addr.AsSlice()...)
	return append(b, byte(at.Port()>>8), byte(at.Port()))
}

func socksError(err error) byte {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksRefused
	case errors.Is(err, syscall.ENETUNREACH):
		return socksNoNetwork
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, errUnknown):
		return socksNoHost
	}
	return socksFailure
}
