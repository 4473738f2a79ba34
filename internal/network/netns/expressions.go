package netns

import (
	"encoding/binary"

	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"
)

// Bits of a connection's state, as nf_conntrack_common.h has them.
const (
	stateEstablished = 1 << 1
	stateRelated     = 1 << 2
	stateNew         = 1 << 3
)

func join(parts ...[]expr.Any) (all []expr.Any) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func native32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

func equal(b ...byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: b} }

func accept() []expr.Any { return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}} }

// local matches packets to an address of the namespace, the gateway's among them.
func local() []expr.Any {
	return []expr.Any{&expr.Fib{Register: 1, FlagDADDR: true, ResultADDRTYPE: true}, equal(native32(unix.RTN_LOCAL)...)}
}

func protocol(p byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equal(p)}
}

// port matches the destination port of TCP or UDP.
func port(p uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		equal(byte(p>>8), byte(p)),
	}
}

func setMark(m uint32) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: native32(m)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1},
	}
}

func marked(m uint32) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyMARK, Register: 1}, equal(native32(m)...)}
}

func state(bits uint32, op expr.CmpOp) []expr.Any {
	return []expr.Any{
		&expr.Ct{Register: 1, Key: expr.CtKeySTATE},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: native32(bits), Xor: native32(0)},
		&expr.Cmp{Op: op, Register: 1, Data: native32(0)},
	}
}

func states(bits uint32) []expr.Any    { return state(bits, expr.CmpOpNeq) }
func notStates(bits uint32) []expr.Any { return state(bits, expr.CmpOpEq) }

func limit(perSecond uint64) []expr.Any {
	return []expr.Any{&expr.Limit{Type: expr.LimitTypePkts, Rate: perSecond, Unit: expr.LimitTimeSecond, Burst: uint32(perSecond)}}
}

// is matches the family.
func (f family) is() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, equal(f.proto)}
}

func (f family) notGateway() []expr.Any {
	gateway := f.gateway.AsSlice()
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.dst, Len: uint32(len(gateway))},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: gateway},
	}
}

// send gives a packet the gateway's address and the port for its destination.
func (f family) send(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: f.gateway.AsSlice()},
		&expr.Immediate{Register: 2, Data: binary.BigEndian.AppendUint16(nil, port)},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.proto), RegAddrMin: 1, RegProtoMin: 2},
	}
}

// toQueue asks for a verdict. The target of iptables is of revision 0, which has no
// bypass either.
func (v variant) toQueue() []expr.Any {
	if v.native {
		return []expr.Any{&expr.Queue{Num: queueNumber}}
	}
	info := xt.Unknown(make([]byte, 8)) // the number, 16 bits, aligned
	binary.NativeEndian.PutUint16(info, queueNumber)
	return []expr.Any{&expr.Target{Name: "NFQUEUE", Rev: 0, Info: &info}}
}

// toLog tells the same socket of a packet.
func toLog() []expr.Any {
	return []expr.Any{&expr.Log{
		Key:   1<<unix.NFTA_LOG_GROUP | 1<<unix.NFTA_LOG_SNAPLEN,
		Group: queueNumber, Snaplen: copyRange,
	}}
}
