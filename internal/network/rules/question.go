package rules

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/exec-server/exec-server/internal/address"
)

// Question is what Explain answers.
type Question struct {
	// Host is a name or an address.
	Host string
	Port uint16 // 0 for ICMP
	// Protocol is what is said there; "" is all of tls, http and tcp.
	Protocol Protocol
	// Addrs are the answers for a name; Names those that an address is an answer
	// for.
	Addrs []netip.Addr
	Names []string
	// Own tells the host's addresses; nil knows none.
	Own func(netip.Addr) bool
}

// Ask reads a question about HOST:PORT, or HOST alone for ICMP.
func Ask(target string, protocol Protocol) (Question, error) {
	q := Question{Host: target, Protocol: protocol}
	if protocol != "" && bits[protocol] == 0 {
		return q, fmt.Errorf("%q is none of tcp, tls, http, udp, icmp", protocol)
	}
	host, port, err := net.SplitHostPort(target)
	switch {
	case strings.Contains(target, "://"):
		return q, fmt.Errorf("%q is a URL; write HOST:PORT, as in github.com:443", target)
	case err == nil && protocol == ICMP:
		q.Host = host // its messages have no port
	case err == nil:
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return q, fmt.Errorf("%q: %q is no port from 1 to 65535", target, port)
		}
		q.Host, q.Port = host, uint16(n)
	case protocol != ICMP && strings.Count(target, ":") > 1:
		return q, fmt.Errorf("%q is not HOST:PORT; write an address of IPv6 as in [2001:db8::1]:443", target)
	case protocol != ICMP:
		return q, fmt.Errorf("%q has no port; write HOST:PORT, as in github.com:443", target)
	}
	if _, ok := literal(q.Host); ok {
		return q, nil
	}
	if _, ok := address.Name(q.Host); !ok {
		return q, fmt.Errorf("%q is neither a name nor an address", q.Host)
	}
	return q, nil
}

// to is where a question is about, for addresses.
func (q Question) to(addrs []netip.Addr) string {
	text := "to " + join(addrs, ", ")
	if q.Port > 0 {
		text += ", port " + strconv.Itoa(int(q.Port))
	}
	return text
}
