package netproxy

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
)

const (
	// maxNames is how many names a command may ask for.
	maxNames = 1 << 16
	// nameTTL is how long an answer is good for, in seconds. The name has its address
	// for as long as the command runs.
	nameTTL     = 60
	maxQuestion = 4 << 10 // bytes
)

// Addresses that stand for names, which are looked up when they are connected to.
// The first is not given.
var (
	made4 = netip.MustParsePrefix("198.18.0.0/15")
	made6 = netip.MustParsePrefix("fdc0:de00::/96")
)

// names gives addresses to the names that a command asks for. It says nothing about
// whether they are there, or may be reached.
type names struct {
	mu    sync.Mutex // guards all below
	byNo  []policy.Host
	given map[string]uint32 // by name; counted from 1
}

func newNames() *names { return &names{given: make(map[string]uint32)} }

// number is the one of a name; 0 if there are too many.
func (n *names) number(h policy.Host) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if no := n.given[h.String()]; no != 0 {
		return no
	}
	if len(n.byNo) >= maxNames {
		return 0
	}
	n.byNo = append(n.byNo, h)
	no := uint32(len(n.byNo))
	n.given[h.String()] = no
	return no
}

// host is what an address stands for: a name that was given it, or itself. One that
// was given to none stands for nothing.
func (n *names) host(addr netip.Addr) (policy.Host, bool) {
	addr = addr.Unmap()
	var no uint32
	switch {
	case made4.Contains(addr):
		b, first := addr.As4(), made4.Addr().As4()
		no = binary.BigEndian.Uint32(b[:]) - binary.BigEndian.Uint32(first[:])
	case made6.Contains(addr):
		b := addr.As16()
		no = binary.BigEndian.Uint32(b[12:])
	default:
		return policy.ParseHost(addr.String())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if no == 0 || uint64(no) > uint64(len(n.byNo)) {
		return policy.Host{}, false
	}
	return n.byNo[no-1], true
}

func made(no uint32, v6 bool) netip.Addr {
	if v6 {
		b := made6.Addr().As16()
		binary.BigEndian.PutUint32(b[12:], no)
		return netip.AddrFrom16(b)
	}
	b := made4.Addr().As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+no)
	return netip.AddrFrom4(b)
}

var errQuestion = errors.New("not a question about a name")

// answer answers a message of DNS.
func (n *names) answer(message []byte) ([]byte, error) {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || h.Response {
		return nil, errQuestion
	}
	q, err := p.Question()
	if err != nil {
		return nil, errQuestion
	}
	out := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	host, ok := policy.ParseHost(q.Name.String())
	head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: nameTTL}
	v6 := q.Type == dnsmessage.TypeAAAA
	switch {
	case h.OpCode != 0:
		out.RCode = dnsmessage.RCodeNotImplemented
	case !ok || host.Addr().IsValid():
		out.RCode = dnsmessage.RCodeNameError
	case q.Class != dnsmessage.ClassINET || q.Type != dnsmessage.TypeA && !v6:
		// The name is there, and has nothing of the kind.
	default:
		no := n.number(host)
		if no == 0 {
			out.RCode = dnsmessage.RCodeServerFailure
			break
		}
		addr := made(no, v6)
		if host.String() == "localhost" {
			addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
			if v6 {
				addr = netip.IPv6Loopback()
			}
		}
		if v6 {
			out.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}}}
		} else {
			out.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: addr.As4()}}}
		}
	}
	return out.Pack()
}

// serveDatagrams answers questions on conn until ctx or it ends.
func (n *names) serveDatagrams(ctx context.Context, conn net.PacketConn) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	b := make([]byte, maxQuestion)
	for {
		size, from, err := conn.ReadFrom(b)
		if err != nil {
			return err
		}
		if answer, err := n.answer(b[:size]); err == nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

// serveStreams answers questions on the connections of l until ctx or it ends.
func (n *names) serveStreams(ctx context.Context, l net.Listener) error {
	return each(ctx, l, func(conn net.Conn) { n.stream(ctx, conn) })
}

func (n *names) stream(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	for {
		_ = conn.SetDeadline(time.Now().Add(headerTimeout))
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		message := make([]byte, binary.BigEndian.Uint16(size[:]))
		if len(message) > maxQuestion {
			return
		}
		if _, err := io.ReadFull(conn, message); err != nil {
			return
		}
		answer, err := n.answer(message)
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}
