package names

import (
	"context"

	"github.com/miekg/dns"
)

const (
	headerSize = 12
	maxQuery   = 4096 // bytes; a question and its options need a few hundred
	// maxDatagram is what passes everywhere without fragments (DNS flag day 2020).
	maxDatagram = 1232
)

// reply returns the answer to a message, or nil if there is none to give. What is
// too long for a datagram is cut, so that the program asks again over TCP.
func (n *Names) reply(ctx context.Context, message []byte, datagram bool) []byte {
	var q dns.Msg
	err := q.Unpack(message)
	if len(message) < headerSize || q.Response {
		return nil
	}
	r := &dns.Msg{MsgHdr: dns.MsgHdr{
		Id: q.Id, Opcode: q.Opcode, Response: true,
		RecursionDesired: q.RecursionDesired, RecursionAvailable: true,
	}}
	limit := dns.MaxMsgSize
	if datagram {
		limit = dns.MinMsgSize
	}
	opts := options(&q)
	if len(opts) == 1 {
		r.SetEdns0(maxDatagram, false)
		if datagram {
			limit = min(max(limit, int(opts[0].UDPSize())), maxDatagram)
		}
	}
	switch {
	case err != nil || len(q.Question) != 1 || len(q.Answer)+len(q.Ns) > 0 || len(opts) > 1:
		r.Rcode = dns.RcodeFormatError
	case q.Opcode != dns.OpcodeQuery:
		r.Rcode = dns.RcodeNotImplemented
	case len(opts) == 1 && opts[0].Version() != 0:
		r.Rcode = dns.RcodeBadVers
	default:
		r.Question = q.Question
		n.answer(ctx, q.Question[0], r)
	}
	r.Truncate(limit)
	b, err := r.Pack()
	if err != nil {
		r.Rcode, r.Answer, r.Extra = dns.RcodeServerFailure, nil, nil
		b, _ = r.Pack()
	}
	return b
}

// busy returns the answer to a message for which there is no room, or nil, and
// reports it.
func (n *Names) busy(message []byte) []byte {
	var q dns.Msg
	if q.Unpack(message) != nil || q.Response || len(q.Question) != 1 {
		return nil
	}
	n.o.Report(Event{Kind: Failed, Name: shown(q.Question[0].Name), Type: typeName(q.Question[0].Qtype), Rule: -1, Err: errBusy})
	r := new(dns.Msg).SetRcode(&q, dns.RcodeServerFailure)
	r.RecursionAvailable = true
	b, _ := r.Pack()
	return b
}

// options returns the OPT records of a message. There may be one (RFC 6891).
func options(m *dns.Msg) []*dns.OPT {
	var opts []*dns.OPT
	for _, rr := range m.Extra {
		if opt, ok := rr.(*dns.OPT); ok {
			opts = append(opts, opt)
		}
	}
	return opts
}
