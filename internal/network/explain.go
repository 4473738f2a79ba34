package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/exec-server/exec-server/internal/network/names"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// Explain says in lines of text what is decided about a target, which is a
// HOST:PORT, and by which rule. The protocol is "" for all that it may be. A name is
// looked up only if the policy lets the environment do that.
func (w *Way) Explain(ctx context.Context, target string, protocol rules.Protocol) ([]string, error) {
	host, text, err := net.SplitHostPort(target)
	if err != nil {
		return nil, fmt.Errorf("explain %q: it is not HOST:PORT", target)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("explain %q: %q is not a port", target, text)
	}
	if !slices.Contains([]rules.Protocol{"", rules.TCP, rules.TLS, rules.HTTP, rules.UDP, rules.ICMP}, protocol) {
		return nil, fmt.Errorf("explain %q: there is no protocol %q", target, protocol)
	}
	q := rules.Question{Host: host, Port: uint16(port), Protocol: protocol, Own: w.own}
	if a, err := netip.ParseAddr(host); err == nil {
		q.Names = w.names.Names(a.Unmap().WithZone(""))
		return w.table.Load().Explain(q), nil
	}
	var denied *names.DeniedError
	q.Addrs, err = w.names.Lookup(ctx, host)
	lines := w.table.Load().Explain(q)
	if err != nil && !errors.As(err, &denied) {
		lines = append(lines, fmt.Sprintf("the look-up failed: %v", err))
	}
	return lines, nil
}
