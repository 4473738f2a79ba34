package testnet

import (
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// zone is what is known of a name.
type zone struct {
	ttl     uint32
	rounds  [][]string
	asked   map[uint16]int // by type, so that A and AAAA are both of the same round
	records []dns.RR
	handler func(w dns.ResponseWriter, r *dns.Msg)
}

// Set makes a name have the answers: addresses, or one other name for an alias. A
// name "*.x" has all names below x that have no answers of their own. What was known
// of the name is forgotten.
func (d *DNS) Set(name string, ttl time.Duration, answers ...string) {
	d.Flip(name, ttl, answers)
}

// Flip makes a name have other answers each time that it is asked for, and from then
// on the last ones.
func (d *DNS) Flip(name string, ttl time.Duration, rounds ...[]string) {
	d.set(name, &zone{ttl: uint32(ttl / time.Second), rounds: rounds, asked: map[uint16]int{}})
}

// Add adds records in the notation of zone files to a name's.
func (d *DNS) Add(records ...string) error {
	for _, text := range records {
		rr, err := dns.NewRR(text)
		if err != nil {
			return err
		}
		name := canonical(rr.Header().Name)
		d.mu.Lock()
		if d.zones[name] == nil {
			d.zones[name] = &zone{}
		}
		d.zones[name].records = append(d.zones[name].records, rr)
		d.mu.Unlock()
	}
	return nil
}

// Handle makes f answer for a name.
func (d *DNS) Handle(name string, f func(w dns.ResponseWriter, r *dns.Msg)) {
	d.set(name, &zone{handler: f})
}

func (d *DNS) set(name string, z *zone) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.zones[canonical(name)] = z
}

func canonical(name string) string { return strings.ToLower(dns.Fqdn(name)) }

// zone finds a name, or the closest wildcard. d.mu is held.
func (d *DNS) zone(name string) *zone {
	name = canonical(name)
	if z := d.zones[name]; z != nil {
		return z
	}
	for name != "." {
		if _, name, _ = strings.Cut(name, "."); name == "" {
			break
		}
		if z := d.zones["*."+name]; z != nil {
			return z
		}
	}
	return nil
}

// answers are those of a type for a name, by way of its aliases. d.mu is held.
func (d *DNS) answers(name string, kind uint16, depth int) []dns.RR {
	z := d.zone(name)
	if z == nil || depth == 8 {
		return nil
	}
	var rrs []dns.RR
	for _, rr := range z.records {
		if rr.Header().Rrtype == kind {
			rrs = append(rrs, rr)
		}
	}
	if len(z.rounds) == 0 {
		return rrs
	}
	round := z.rounds[min(z.asked[kind], len(z.rounds)-1)]
	z.asked[kind]++
	for _, to := range round {
		header := dns.RR_Header{Name: name, Class: dns.ClassINET, Ttl: z.ttl}
		a, err := netip.ParseAddr(to)
		switch {
		case err != nil:
			header.Rrtype = dns.TypeCNAME
			rrs = append(rrs, &dns.CNAME{Hdr: header, Target: dns.Fqdn(to)})
			rrs = append(rrs, d.answers(dns.Fqdn(to), kind, depth+1)...)
		case a.Is4() && kind == dns.TypeA:
			header.Rrtype = dns.TypeA
			rrs = append(rrs, &dns.A{Hdr: header, A: a.AsSlice()})
		case a.Is6() && kind == dns.TypeAAAA:
			header.Rrtype = dns.TypeAAAA
			rrs = append(rrs, &dns.AAAA{Hdr: header, AAAA: a.AsSlice()})
		}
	}
	return rrs
}
