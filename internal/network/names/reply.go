package names

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// reply is what a server's answer says about the question, and nothing besides.
type reply struct {
	missing bool // there is no such name
	addrs   []netip.Addr
	records []dns.RR // of the type asked for; for addresses none
	// ttl is how long it is good, within our bounds; 0 is not to be remembered.
	ttl time.Duration
}

const (
	maxAliases = 16  // from a name to its addresses
	maxRecords = 256 // of a type that is not an address
)

// readReply reads an answer that is known to be one to the question. It is a
// *rcodeError if the server did not resolve it.
func readReply(m *dns.Msg, name string, qtype uint16) (*reply, error) {
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return nil, &rcodeError{m.Rcode}
	}
	target, least := follow(m.Answer, dns.Fqdn(name), qtype)
	r := &reply{missing: m.Rcode == dns.RcodeNameError}
	if !r.missing {
		for _, rr := range m.Answer {
			if h := rr.Header(); h.Rrtype == qtype && h.Class == dns.ClassINET && strings.EqualFold(h.Name, target) {
				if r.add(rr) {
					least = min(least, ttl(h))
				}
			}
		}
	}
	switch {
	case len(r.addrs)+len(r.records) > 0:
		r.ttl = min(max(least, minTTL), maxTTL)
	default:
		r.ttl = negativeTTL(m.Ns, least)
	}
	return r, nil
}

// add takes a record over, if there is room and it is a proper one.
func (r *reply) add(rr dns.RR) bool {
	var ip net.IP
	switch rr := rr.(type) {
	case *dns.A:
		ip = rr.A.To4()
	case *dns.AAAA:
		// An IPv4 address in disguise is none that IPv6 reaches.
		if ip = rr.AAAA; ip.To4() != nil {
			return false
		}
	default:
		if len(r.records) >= maxRecords {
			return false
		}
		r.records = append(r.records, rr)
		return true
	}
	a, ok := netip.AddrFromSlice(ip)
	if !ok || len(r.addrs) >= maxAddrs || slices.Contains(r.addrs, a) {
		return false
	}
	r.addrs = append(r.addrs, a)
	return true
}

// follow returns the name at the end of a name's aliases, and the least of their times
// to live.
func follow(answer []dns.RR, name string, qtype uint16) (string, time.Duration) {
	least := maxTTL
	for range maxAliases {
		if qtype == dns.TypeCNAME {
			break
		}
		i := slices.IndexFunc(answer, func(rr dns.RR) bool {
			c, ok := rr.(*dns.CNAME)
			return ok && c.Hdr.Class == dns.ClassINET && strings.EqualFold(c.Hdr.Name, name)
		})
		if i < 0 {
			break
		}
		c := answer[i].(*dns.CNAME)
		name, least = c.Target, min(least, ttl(&c.Hdr))
	}
	return name, least
}

// negativeTTL is how long it is good that there is nothing (RFC 2308): 0 if the
// server does not say.
func negativeTTL(authority []dns.RR, least time.Duration) time.Duration {
	for _, rr := range authority {
		if soa, ok := rr.(*dns.SOA); ok {
			minimum := time.Duration(soa.Minttl) * time.Second
			return min(least, ttl(&soa.Hdr), minimum, maxNegativeTTL)
		}
	}
	return 0
}

// ttl is a record's time to live; one with the topmost bit is 0 (RFC 2181, 8).
func ttl(h *dns.RR_Header) time.Duration {
	if h.Ttl > 1<<31-1 {
		return 0
	}
	return time.Duration(h.Ttl) * time.Second
}
