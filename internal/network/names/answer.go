package names

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/miekg/dns"

	"github.com/exec-server/exec-server/internal/address"
	"github.com/exec-server/exec-server/internal/network/rules"
)

// answered are the types of questions. Others, such as transfers and what only tunnels
// use, are not implemented here.
var answered = map[uint16]bool{
	dns.TypeA: true, dns.TypeAAAA: true, dns.TypeHTTPS: true, dns.TypeSVCB: true, dns.TypeANY: true,
	dns.TypeCNAME: true, dns.TypeNS: true, dns.TypeSOA: true, dns.TypeMX: true,
	dns.TypeTXT: true, dns.TypeSRV: true, dns.TypeCAA: true, dns.TypePTR: true,
	dns.TypeNAPTR: true, dns.TypeURI: true, dns.TypeTLSA: true, dns.TypeSSHFP: true,
	dns.TypeDS: true, dns.TypeDNSKEY: true, dns.TypeHINFO: true,
}

// errRemoved is the error where the policy took all addresses out. That is reported.
var errRemoved = errors.New("the policy denies the addresses of the name")

// answer puts the answer to a question into r, and reports what was decided.
func (n *Names) answer(ctx context.Context, q dns.Question, r *dns.Msg) {
	name, ok := address.Name(q.Name)
	event := Event{Name: shown(q.Name), Type: typeName(q.Qtype), Rule: -1}
	d := rules.Decision{Verdict: rules.Deny, Reason: BadName, Rule: -1}
	switch {
	case q.Qclass != dns.ClassINET || !answered[q.Qtype]:
		r.Rcode = dns.RcodeNotImplemented
		event.Kind, event.Reason = Denied, rules.Unsupported
		n.o.Report(event)
		return
	case isLocal(name) && ok:
		if q.Qtype == dns.TypeA || q.Qtype == dns.TypeAAAA {
			addresses(q, local(q.Qtype == dns.TypeAAAA), r)
		}
		return
	case q.Qtype == dns.TypePTR && ok && under(name, "arpa"):
		d = n.reverse(name)
	case ok:
		d = n.resolve(name)
	}
	err := n.answerAllowed(ctx, q, name, d, r)
	denied := new(DeniedError)
	switch {
	case errors.As(err, &denied):
		event.Kind, event.Reason, event.Rule = Denied, denied.Decision.Reason, denied.Decision.Rule
		r.Rcode = dns.RcodeNameError
		explain(r, denied.Error())
	case err == errRemoved:
		// No data, as for a name that has no address: it may have one of the other
		// family, and some libraries give a name up that does not exist in one.
		explain(r, err.Error())
		return
	case err != nil:
		event.Kind, event.Err = Failed, err
		r.Rcode = dns.RcodeServerFailure
	default:
		event.Kind, event.Reason, event.Rule = Allowed, d.Reason, d.Rule
	}
	n.o.Report(event)
}

// answerAllowed answers a question about a name of which d was decided.
func (n *Names) answerAllowed(ctx context.Context, q dns.Question, name string, d rules.Decision, r *dns.Msg) error {
	if d.Verdict != rules.Allow {
		return &DeniedError{d}
	}
	switch q.Qtype {
	case dns.TypeA, dns.TypeAAAA:
		f, err := n.lookup(ctx, name, q.Qtype == dns.TypeAAAA)
		if err != nil {
			return err
		}
		addresses(q, f, r)
		if len(f.removed) > 0 && len(f.addrs) == 0 {
			return errRemoved
		}
	case dns.TypeHTTPS, dns.TypeSVCB:
		// No data: they would bring keys that hide the name, and other addresses.
	case dns.TypeANY:
		// RFC 8482.
		r.Answer = append(r.Answer, &dns.HINFO{Hdr: header(q, dns.TypeHINFO, maxTTL), Cpu: "RFC8482"})
	default:
		reply, err := n.ask(ctx, name, q.Qtype)
		if err != nil {
			return err
		}
		if reply.missing {
			r.Rcode = dns.RcodeNameError
		}
		for _, rr := range reply.records {
			rr = dns.Copy(rr) // the reply may be others' too
			*rr.Header() = header(q, q.Qtype, reply.ttl)
			r.Answer = append(r.Answer, rr)
		}
	}
	return nil
}

// reverse decides about the name of an address. In the mode rules nobody needs it,
// and the name would say anything; of special addresses upstream is to know nothing.
func (n *Names) reverse(name string) rules.Decision {
	table := n.o.Table()
	a, ok := reversed(name)
	if !ok || table.Policy().Mode != rules.Open {
		return rules.Decision{Verdict: rules.Deny, Reason: rules.ByMode, Rule: -1}
	}
	return table.Answer(name, a, n.o.Own(a))
}

// addresses puts addresses into an answer, as those of the name that was asked for:
// there are no aliases in it. None is no data, unless there is no such name.
func addresses(q dns.Question, f found, r *dns.Msg) {
	if f.missing {
		r.Rcode = dns.RcodeNameError
	}
	h := header(q, q.Qtype, time.Until(f.until))
	for _, a := range f.addrs {
		if q.Qtype == dns.TypeA {
			r.Answer = append(r.Answer, &dns.A{Hdr: h, A: net.IP(a.AsSlice())})
		} else {
			r.Answer = append(r.Answer, &dns.AAAA{Hdr: h, AAAA: net.IP(a.AsSlice())})
		}
	}
}

// header is that of a record with the name that was asked for, as it was written.
func header(q dns.Question, rrtype uint16, ttl time.Duration) dns.RR_Header {
	return dns.RR_Header{Name: q.Name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: uint32(max(ttl, 0) / time.Second)}
}

// explain adds to an answer that it is the policy's (RFC 8914), for those who asked in
// a way that has room for it.
func explain(r *dns.Msg, text string) {
	if opt := r.IsEdns0(); opt != nil {
		opt.Option = append(opt.Option, &dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeBlocked, ExtraText: text})
	}
}
