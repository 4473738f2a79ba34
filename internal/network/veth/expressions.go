package veth

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"
)

// Bits of a connection's state and status, as nf_conntrack_common.h has them.
const (
	stateEstablished = 1 << 1
	stateRelated     = 1 << 2
	stateNew         = 1 << 3
	statusConfirmed  = 1 << 3
)

const (
	equal   = expr.CmpOpEq
	unequal = expr.CmpOpNeq
)

func join(parts ...[]expr.Any) (all []expr.Any) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func native32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

func compare(op expr.CmpOp, b ...byte) expr.Any { return &expr.Cmp{Op: op, Register: 1, Data: b} }

func accept() []expr.Any { return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}} }
func drop() []expr.Any   { return []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}} }

// jump goes to a chain that does not come back.
func jump(chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: expr.VerdictGoto, Chain: chain}}
}

func meta(key expr.MetaKey) expr.Any { return &expr.Meta{Key: key, Register: 1} }

// from and to match the links of the daemon by the start of their names.
func (t transaction) from() []expr.Any {
	return []expr.Any{meta(expr.MetaKeyIIFNAME), compare(equal, []byte(t.h.prefix)...)}
}

func (t transaction) to(op expr.CmpOp) []expr.Any {
	return []expr.Any{meta(expr.MetaKeyOIFNAME), compare(op, []byte(t.h.prefix)...)}
}

func ifname(name string) []byte {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, name)
	return b
}

// byName goes to the link's own chain, if there is one.
func (t transaction) byName(key expr.MetaKey, name string) []expr.Any {
	return []expr.Any{meta(key), &expr.Lookup{SourceRegister: 1, IsDestRegSet: true, SetName: name}}
}

// dead matches if there was no sign of life lately.
func (t transaction) dead() []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: sign.Key},
		&expr.Lookup{SourceRegister: 1, SetName: t.alive().Name, Invert: true},
	}
}

func protocol(p byte) []expr.Any {
	return []expr.Any{meta(expr.MetaKeyL4PROTO), compare(equal, p)}
}

// icmp compares the type of a message.
func icmp(typ byte, op expr.CmpOp) []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Len: 1}, compare(op, typ)}
}

func tracked(key expr.CtKey, bits uint32, op expr.CmpOp) []expr.Any {
	return []expr.Any{
		&expr.Ct{Register: 1, Key: key},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: native32(bits), Xor: native32(0)},
		compare(op, native32(0)...),
	}
}

// states matches if the connection's state is one of them.
func states(bits uint32) []expr.Any { return tracked(expr.CtKeySTATE, bits, unequal) }

// confirmed matches flows of which a packet was sent on before, or with equal those
// of which none was.
func confirmed(op expr.CmpOp) []expr.Any { return tracked(expr.CtKeySTATUS, statusConfirmed, op) }

// over matches what is more than that a second.
func over(typ expr.LimitType, rate uint64, burst uint32) []expr.Any {
	return []expr.Any{&expr.Limit{Type: typ, Rate: rate, Unit: expr.LimitTimeSecond, Burst: burst, Over: true}}
}

// toQueue asks. The target of iptables is of revision 0, which has no bypass, as the
// expression has none here: without somebody who answers, packets are dropped.
func (t transaction) toQueue() []expr.Any {
	n := t.h.queue.Number()
	if t.native {
		return []expr.Any{&expr.Queue{Num: n}}
	}
	info := xt.Unknown(make([]byte, 8)) // the number, 16 bits, aligned
	binary.NativeEndian.PutUint16(info, n)
	return []expr.Any{&expr.Target{Name: "NFQUEUE", Rev: 0, Info: &info}}
}

// family is what there is once for IPv4 and once for IPv6.
type family struct {
	proto byte
	at    uint32 // where the source is in the header, in bytes
	pool  netip.Prefix
}

var (
	ipv4 = family{proto: unix.NFPROTO_IPV4, at: 12}
	ipv6 = family{proto: unix.NFPROTO_IPV6, at: 8}
)

func (h *Host) families() []family {
	four, six := ipv4, ipv6
	four.pool, six.pool = h.pool.v4, h.pool.v6
	return []family{four, six}
}

// is matches the family.
func (f family) is() []expr.Any {
	return []expr.Any{meta(expr.MetaKeyNFPROTO), compare(equal, f.proto)}
}

func (f family) load(length int) expr.Any {
	return &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.at, Len: uint32(length)}
}

func (f family) source(a netip.Addr, op expr.CmpOp) []expr.Any {
	return []expr.Any{f.load(len(a.AsSlice())), compare(op, a.AsSlice()...)}
}

// within matches sources out of the pool.
func (f family) within() []expr.Any {
	a := f.pool.Addr().AsSlice()
	return []expr.Any{
		f.load(len(a)),
		&expr.Bitwise{
			SourceRegister: 1, DestRegister: 1, Len: uint32(len(a)),
			Mask: net.CIDRMask(f.pool.Bits(), 8*len(a)), Xor: make([]byte, len(a)),
		},
		compare(equal, a...),
	}
}
