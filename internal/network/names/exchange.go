package names

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// errCase is the error of an answer that has the name in other letters than the
// question: it may be a guess, or come from a server that does not keep them.
var errCase = errors.New("the answer does not have the question's letters")

// errQuestion is the error of an answer to something else.
var errQuestion = errors.New("the answer is to another question")

// question returns a query of our own: nothing of the program's is in it but the
// name and the type. Its id, its port and the case of its letters are random, which
// an answer that is not the server's has to guess.
func question(name string, qtype uint16) *dns.Msg {
	m := new(dns.Msg)
	m.Id = dns.Id()
	m.RecursionDesired = true
	m.Question = []dns.Question{{Name: dns.Fqdn(mixCase(name)), Qtype: qtype, Qclass: dns.ClassINET}}
	return m.SetEdns0(maxDatagram, false)
}

// mixCase returns a name with each letter in upper or lower case by chance.
func mixCase(name string) string {
	b := []byte(name)
	coins := make([]byte, len(b))
	_, _ = rand.Read(coins) // it does not fail
	for i, c := range b {
		if coins[i]&1 != 0 && c >= 'a' && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// check says what is wrong with an answer to a question.
func check(m, q *dns.Msg, tcp bool) error {
	if !m.Response || m.Id != q.Id || m.Opcode != dns.OpcodeQuery {
		return errQuestion
	}
	if len(m.Question) == 0 && m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return nil // some leave the question out where they do not answer it
	}
	if len(m.Question) != 1 || m.Question[0].Qtype != q.Question[0].Qtype || m.Question[0].Qclass != dns.ClassINET ||
		!strings.EqualFold(m.Question[0].Name, q.Question[0].Name) {
		return errQuestion
	}
	if !tcp && m.Question[0].Name != q.Question[0].Name {
		return errCase
	}
	return nil
}

// exchange asks a server and returns its answer.
func exchange(ctx context.Context, server netip.AddrPort, q *dns.Msg, tcp bool) (*dns.Msg, error) {
	network, timeout := "udp", udpTimeout
	if tcp {
		network, timeout = "tcp", tcpTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, network, server.String())
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	b, err := q.Pack()
	if err != nil {
		return nil, err
	}
	if tcp {
		return exchangeTCP(c, q, b)
	}
	return exchangeUDP(c, q, b)
}

// exchangeUDP passes over what is no answer to the question: anybody may send that.
func exchangeUDP(c net.Conn, q *dns.Msg, b []byte) (*dns.Msg, error) {
	if _, err := c.Write(b); err != nil {
		return nil, err
	}
	buf := make([]byte, maxQuery)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return nil, err
		}
		m := new(dns.Msg)
		err = m.Unpack(buf[:n])
		// A message that is cut in the middle of a record is whole as far as it says so.
		if err != nil && !m.Truncated {
			continue
		}
		switch err := check(m, q, false); err {
		case nil:
			return m, nil
		case errCase:
			return nil, err
		}
	}
}

func exchangeTCP(c net.Conn, q *dns.Msg, b []byte) (*dns.Msg, error) {
	if err := writeMessage(c, b); err != nil {
		return nil, err
	}
	b, err := readMessage(c, dns.MaxMsgSize)
	if err != nil {
		return nil, err
	}
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		return nil, err
	}
	return m, check(m, q, true)
}
