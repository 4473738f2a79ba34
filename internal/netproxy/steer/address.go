package steer

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The addresses of a namespace: connections come from a guest's, and are steered
// to sockets on the gateway's.
var (
	guest    = [2]netip.Addr{netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr("fd65:7865:64::2")}
	Gateway4 = netip.MustParseAddr("203.0.113.1")
	Gateway6 = netip.MustParseAddr("fd65:7865:64::1")
)

// loopback is the index of every namespace's own.
const loopback = 1

const create = unix.NLM_F_ACK | unix.NLM_F_CREATE

// Prepare gives the namespace addresses, and routes that lead everything to its
// loopback, which has to be up.
func Prepare() error {
	s, err := open(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer s.close()
	for _, addr := range []netip.Addr{guest[0], Gateway4, guest[1], Gateway6} {
		family, bits := byte(unix.AF_INET), byte(32)
		if addr.Is6() {
			family, bits = unix.AF_INET6, 128
		}
		head := binary.NativeEndian.AppendUint32([]byte{family, bits, unix.IFA_F_NODAD, unix.RT_SCOPE_UNIVERSE}, loopback)
		r := newRequest(unix.RTM_NEWADDR, create, head...).attr(unix.IFA_LOCAL, addr.AsSlice()).attr(unix.IFA_ADDRESS, addr.AsSlice())
		if err := s.do(r); err != nil {
			return fmt.Errorf("address %s: %w", addr, err)
		}
	}
	for _, addr := range guest {
		family := byte(unix.AF_INET)
		if addr.Is6() {
			family = unix.AF_INET6
		}
		head := []byte{family, 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST, 0, 0, 0, 0}
		index := binary.NativeEndian.AppendUint32(nil, loopback)
		if err := s.do(newRequest(unix.RTM_NEWROUTE, create, head...).attr(unix.RTA_OIF, index).attr(unix.RTA_PREFSRC, addr.AsSlice())); err != nil {
			return fmt.Errorf("route from %s: %w", addr, err)
		}
	}
	return nil
}
