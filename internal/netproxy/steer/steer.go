package steer

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Ports are where connections are steered to, on both gateway's addresses but for
// the two of datagrams.
type Ports struct {
	TCP, DNSOverTCP uint16
	DNS4, DNS6      uint16 // datagrams
}

// closed is a port that no command can listen on, so that what is steered to it is
// refused.
const closed = 1

// Steer adds the rules. What is for the namespace's own addresses stays there,
// but for questions about names, which are taken from wherever a program thinks
// that a server is. Datagrams for anywhere else are refused.
func Steer(p Ports) error {
	s, err := open(unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer s.close()
	batch := []*request{
		newRequest(unix.NFNL_MSG_BATCH_BEGIN, 0, 0, 0, 0, unix.NFNL_SUBSYS_NFTABLES),
		rules(unix.NFT_MSG_NEWTABLE).attr(unix.NFTA_TABLE_NAME, text("steer")),
		rules(unix.NFT_MSG_NEWCHAIN).attr(unix.NFTA_CHAIN_TABLE, text("steer")).attr(unix.NFTA_CHAIN_NAME, text("out")).
			attr(unix.NFTA_CHAIN_TYPE, text("nat")).
			attr(unix.NFTA_CHAIN_HOOK|unix.NLA_F_NESTED, append(
				appendAttr(nil, unix.NFTA_HOOK_HOOKNUM, number(unix.NF_INET_LOCAL_OUT)),
				appendAttr(nil, unix.NFTA_HOOK_PRIORITY, number(-100))...)),
	}
	for _, f := range []struct {
		family  byte
		gateway netip.Addr
		dns     uint16
	}{{unix.NFPROTO_IPV4, Gateway4, p.DNS4}, {unix.NFPROTO_IPV6, Gateway6, p.DNS6}} {
		for _, r := range []struct {
			protocol byte
			only     []byte // which of them, as expressions
			port     uint16
		}{
			{unix.IPPROTO_TCP, toNames(), p.DNSOverTCP},
			{unix.IPPROTO_UDP, toNames(), f.dns},
			{unix.IPPROTO_TCP, elsewhere(), p.TCP},
			{unix.IPPROTO_UDP, elsewhere(), closed},
		} {
			e := same(unix.NFT_META_NFPROTO, f.family)
			e = append(e, same(unix.NFT_META_L4PROTO, r.protocol)...)
			e = append(e, r.only...)
			e = append(e, translate(f.family, f.gateway, r.port)...)
			batch = append(batch, rules(unix.NFT_MSG_NEWRULE).attr(unix.NFTA_RULE_TABLE, text("steer")).attr(unix.NFTA_RULE_CHAIN, text("out")).
				attr(unix.NFTA_RULE_EXPRESSIONS|unix.NLA_F_NESTED, e))
		}
	}
	batch = append(batch, newRequest(unix.NFNL_MSG_BATCH_END, 0, 0, 0, 0, unix.NFNL_SUBSYS_NFTABLES))
	if err := s.do(batch...); err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	return nil
}

// rules is a message to nftables about both families.
func rules(kind uint16) *request {
	flags := uint16(create)
	if kind == unix.NFT_MSG_NEWRULE {
		flags |= unix.NLM_F_APPEND
	}
	return newRequest(unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags, unix.NFPROTO_INET, 0, 0, 0)
}

func text(s string) []byte { return append([]byte(s), 0) }

func number(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// expression is one step of a rule, with attributes in the order of their numbers
// from 1; nil leaves one out.
func expression(name string, attrs ...[]byte) []byte {
	var data []byte
	for i, value := range attrs {
		if value != nil {
			data = appendAttr(data, uint16(i+1), value)
		}
	}
	e := appendAttr(nil, unix.NFTA_EXPR_NAME, text(name))
	e = appendAttr(e, unix.NFTA_EXPR_DATA|unix.NLA_F_NESTED, data)
	return appendAttr(nil, unix.NFTA_LIST_ELEM|unix.NLA_F_NESTED, e)
}

// literal is the value of an expression.
func literal(value []byte) []byte { return appendAttr(nil, unix.NFTA_DATA_VALUE, value) }

var register1, register2 = number(unix.NFT_REG_1), number(unix.NFT_REG_2)

func compare(op int32, value []byte) []byte {
	return expression("cmp", register1, number(op), literal(value))
}

// same goes on if a property of the packet has a value.
func same(key int32, value byte) []byte {
	return append(expression("meta", register1, number(key)), compare(unix.NFT_CMP_EQ, []byte{value})...)
}

// toNames goes on with what is for the port of DNS.
func toNames() []byte {
	e := expression("payload", register1, number(unix.NFT_PAYLOAD_TRANSPORT_HEADER), number(2), number(2))
	return append(e, compare(unix.NFT_CMP_EQ, []byte{0, 53})...)
}

// elsewhere goes on with what is for no address of the namespace.
func elsewhere() []byte {
	e := expression("fib", register1, number(unix.NFT_FIB_RESULT_ADDRTYPE), number(unix.NFTA_FIB_F_DADDR))
	return append(e, compare(unix.NFT_CMP_NEQ, binary.NativeEndian.AppendUint32(nil, unix.RTN_LOCAL))...)
}

// translate puts another destination into the packet.
func translate(family byte, addr netip.Addr, port uint16) []byte {
	e := expression("immediate", register1, literal(addr.AsSlice()))
	e = append(e, expression("immediate", register2, literal(binary.BigEndian.AppendUint16(nil, port)))...)
	return append(e, expression("nat", number(unix.NFT_NAT_DNAT), number(int32(family)), register1, nil, register2)...)
}
