package names

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/singleflight"
)

// Upstream is the servers that resolve what may resolve. All environments share one.
type Upstream struct {
	servers func() ([]netip.AddrPort, error)
	// exchange asks one server: exchangeUDP and exchangeTCP, but in tests of time.
	exchange func(ctx context.Context, server netip.AddrPort, q *dns.Msg, tcp bool) (*dns.Msg, error)
	flights  singleflight.Group
	slots    chan struct{} // one is in it for each question on its way

	mu   sync.Mutex // guards slow
	slow map[netip.AddrPort]time.Time
}

const (
	maxFlights = 512 // questions of all environments together, each of which has a socket
	udpTimeout = 2 * time.Second
	tcpTimeout = 4 * time.Second
	// askTimeout is for all servers together.
	askTimeout = 8 * time.Second
	rounds     = 4 // a datagram may be lost, and a server that has to ask others is slow
	// A server that did not answer is asked after the others for so long.
	slowFor = 30 * time.Second
)

// errNoServers is the error where nobody can be asked.
var errNoServers = errors.New("there is no name server")

// NewUpstream returns an upstream of the servers, each "IP" or "IP:PORT", in their
// order. Without any it asks those of the host's /etc/resolv.conf.
func NewUpstream(servers []string) (*Upstream, error) {
	u := &Upstream{exchange: exchange, slots: make(chan struct{}, maxFlights), slow: map[netip.AddrPort]time.Time{}}
	if len(servers) == 0 {
		u.servers = (&resolvConf{path: "/etc/resolv.conf"}).servers
		return u, nil
	}
	var addrs []netip.AddrPort
	for _, s := range servers {
		a, err := parseServer(s)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, a)
	}
	u.servers = func() ([]netip.AddrPort, error) { return addrs, nil }
	return u, nil
}

// ask returns what the first server says that answers. The same question is asked
// once at a time, and who asked it does not end it for others.
func (u *Upstream) ask(ctx context.Context, name string, qtype uint16) (*reply, error) {
	flight := u.flights.DoChan(name+" "+typeName(qtype), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		select {
		case u.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, errBusy
		}
		defer func() { <-u.slots }()
		return u.askServers(ctx, name, qtype)
	})
	select {
	case r := <-flight:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*reply), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// room is how many more questions there can be. An environment that has as many on
// their way gets no answer, so that others find some too.
func (u *Upstream) room() int { return cap(u.slots) - len(u.slots) }

// askServers asks one server after the other. Those that say that they cannot are
// asked once, those that say nothing again.
func (u *Upstream) askServers(ctx context.Context, name string, qtype uint16) (*reply, error) {
	servers, err := u.order()
	if err != nil {
		return nil, err
	}
	last := errNoServers
	for range rounds {
		var silent []netip.AddrPort
		for _, server := range servers {
			if ctx.Err() != nil {
				return nil, last
			}
			r, err := u.askServer(ctx, server, name, qtype)
			if err == nil {
				u.setSlow(server, time.Time{})
				return r, nil
			}
			last = fmt.Errorf("ask %s: %w", server, err)
			if refused := new(rcodeError); !errors.As(err, &refused) {
				silent = append(silent, server)
				u.setSlow(server, time.Now().Add(slowFor))
			}
		}
		servers = silent
	}
	return nil, last
}

// rcodeError is the error of a server that answers, but does not resolve.
type rcodeError struct{ rcode int }

func (e *rcodeError) Error() string { return dns.RcodeToString[e.rcode] }

// askServer asks one server, over TCP where the answer is too long, or looks as if
// somebody else could have made it.
func (u *Upstream) askServer(ctx context.Context, server netip.AddrPort, name string, qtype uint16) (*reply, error) {
	q := question(name, qtype)
	m, err := u.exchange(ctx, server, q, false)
	if err == nil && m.Rcode == dns.RcodeFormatError {
		q = question(name, qtype)
		q.Extra = nil // a server from before EDNS
		m, err = u.exchange(ctx, server, q, false)
	}
	if errors.Is(err, errCase) || err == nil && m.Truncated {
		m, err = u.exchange(ctx, server, q, true)
	}
	if err != nil {
		return nil, err
	}
	return readReply(m, name, qtype)
}
