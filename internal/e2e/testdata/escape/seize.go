package main

import (
	"encoding/binary"
	"net"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// seize leads all TCP of the namespace to a port of the gateway, with rules of its own
// in the place of those that are there.
func seize([]string) (string, error) {
	c, err := nftables.New()
	if err != nil {
		return "", err
	}
	c.FlushRuleset()
	t := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "seized"})
	chain := c.AddChain(&nftables.Chain{Name: "out", Table: t, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest})
	c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Immediate{Register: 1, Data: net.IPv4(192, 0, 0, 1).To4()},
		&expr.Immediate{Register: 2, Data: binary.BigEndian.AppendUint16(nil, 63080)},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegProtoMin: 2},
	}})
	return "seized", c.Flush()
}
