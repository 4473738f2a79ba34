package testnet

import (
	"net/netip"
	"strings"
	"sync"

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

// Query is one that has reached the server.
type Query struct {
	Name    string // as it was asked, without the last dot
	Type    string // "A" and so on
	Network string // "udp" or "tcp"
	From    netip.AddrPort
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
