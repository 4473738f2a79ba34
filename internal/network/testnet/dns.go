package testnet

import (
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// DNS is the world's resolver, on port 53 of every address there, over UDP and TCP.
// It knows the names that it was told; to all others it says that there is no such
// name.
type DNS struct {
	mu      sync.Mutex // guards what follows
	zones   map[string]*zone
	queries []Query
}

// zone is what is known of a name.
type zone struct {
	ttl     uint32
	rounds  [][]string
	asked   map[uint16]int // by type, so that A and AAAA are both of the same round
	records []dns.RR
	handler func(w dns.ResponseWriter, r *dns.Msg)
}

// Query is one that has reached the server.
type Query struct {
	Name    string // as it was asked, without the last dot
	Type    string // "A" and so on
	Network string // "udp" or "tcp"
	From    netip.AddrPort
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

// Queries returns what was asked so far.
func (d *DNS) Queries() []Query {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Query(nil), d.queries...)
}

// Count counts the queries for a name, of any type.
func (d *DNS) Count(name string) int {
	n := 0
	for _, q := range d.Queries() {
		if canonical(q.Name) == canonical(name) {
			n++
		}
	}
	return n
}

func canonical(name string) string { return strings.ToLower(dns.Fqdn(name)) }

// ServeDNS implements dns.Handler.
func (d *DNS) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	q := r.Question[0]
	from, _ := netip.ParseAddrPort(w.RemoteAddr().String())
	d.mu.Lock()
	d.queries = append(d.queries, Query{strings.TrimSuffix(q.Name, "."), dns.Type(q.Qtype).String(), w.RemoteAddr().Network(), from})
	z := d.zone(q.Name)
	m := new(dns.Msg)
	m.SetReply(r)
	m.RecursionAvailable = true
	if z != nil && z.handler != nil {
		d.mu.Unlock()
		z.handler(w, r)
		return
	}
	if z == nil {
		m.Rcode = dns.RcodeNameError
	} else {
		m.Answer = d.answers(q.Name, q.Qtype, 0)
	}
	d.mu.Unlock()
	if len(m.Answer) == 0 {
		m.Ns = []dns.RR{&dns.SOA{
			Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: 5},
			Ns:  "ns.test.", Mbox: "nobody.test.", Serial: 1, Refresh: 60, Retry: 60, Expire: 60, Minttl: 5,
		}}
	}
	size := dns.MinMsgSize
	if opt := r.IsEdns0(); opt != nil {
		size = int(opt.UDPSize())
		m.SetEdns0(opt.UDPSize(), false)
	}
	if w.RemoteAddr().Network() == "udp" {
		m.Truncate(size)
	}
	_ = w.WriteMsg(m)
}

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

// serveDNS starts the resolver.
func (n *Internet) serveDNS() (*DNS, error) {
	d := &DNS{zones: map[string]*zone{}}
	for _, family := range []string{"4", "6"} {
		c, err := n.World.ListenPacket("udp"+family, ":53")
		if err != nil {
			return nil, err
		}
		n.serve(c, (&dns.Server{PacketConn: c, Handler: d}).ActivateAndServe)
		l, err := n.World.Listen("tcp"+family, ":53")
		if err != nil {
			return nil, err
		}
		n.serve(l, (&dns.Server{Listener: l, Handler: d}).ActivateAndServe)
	}
	return d, nil
}
