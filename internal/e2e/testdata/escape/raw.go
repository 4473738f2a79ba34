package main

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// checksum is that of RFC 1071.
func checksum(parts ...[]byte) uint16 {
	var sum uint32
	for _, b := range parts {
		for i := 0; i+1 < len(b); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(b[i:]))
		}
		if len(b)%2 == 1 {
			sum += uint32(b[len(b)-1]) << 8
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// segment is TCP or UDP from port 4444 to a port, with a checksum.
func segment(kind string, from, to netip.Addr, port uint16) (byte, []byte) {
	protocol, b := byte(unix.IPPROTO_UDP), make([]byte, 16)
	if kind != "udp" {
		protocol, b = unix.IPPROTO_TCP, make([]byte, 20)
		b[12], b[13], b[14] = 5<<4, map[string]byte{"syn": 2, "ack": 16, "rst": 4, "fin": 1, "none": 0, "synrst": 6, "synfin": 3, "xmas": 0xff}[kind], 0xff
	} else {
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
	}
	binary.BigEndian.PutUint16(b, 4444)
	binary.BigEndian.PutUint16(b[2:], port)
	pseudo := append(append(from.AsSlice(), to.AsSlice()...), 0, protocol, 0, byte(len(b)))
	sum := checksum(pseudo, b)
	if protocol == unix.IPPROTO_UDP {
		binary.BigEndian.PutUint16(b[6:], sum)
	} else {
		binary.BigEndian.PutUint16(b[16:], sum)
	}
	return protocol, b
}

// packet4 is a whole packet of IPv4: args are its kind, source, destination and port,
// and what else is odd about it.
func packet4(args []string) ([]byte, netip.Addr) {
	from, to := netip.MustParseAddrPort(args[1]+":4444").Addr(), netip.MustParseAddrPort(args[2])
	protocol, payload := segment(args[0], from, to.Addr(), to.Port())
	odd := ""
	if len(args) > 3 {
		odd = args[3]
	}
	b := make([]byte, 20)
	if odd == "options" { // strict routing by way of the destination
		b = append(b, 131, 7, 4, 93, 184, 216, 34, 0)
	}
	b[0], b[8], b[9] = 0x40|byte(len(b)/4), 64, protocol
	switch odd {
	case "fragment":
		b[6] = 0x20 // more follow
	case "late":
		b[7] = 8 // begins at byte 64
	case "version":
		b[0] = 0x60 | 5
	case "protocol":
		b[9] = 132
	}
	copy(b[12:], from.AsSlice())
	copy(b[16:], to.Addr().AsSlice())
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)+len(payload)))
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	return append(b, payload...), to.Addr()
}

// forge sends a packet that is made by hand.
func forge(args []string) (string, error) {
	b, to := packet4(args)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return "sent", unix.Sendto(fd, b, 0, &unix.SockaddrInet4{Addr: to.As4()})
}

// forge6 is forge for IPv6, with extension headers: their numbers follow.
func forge6(args []string) (string, error) {
	from, to := netip.MustParseAddr(args[1]), netip.MustParseAddrPort(args[2])
	protocol, payload := segment(args[0], from, to.Addr(), to.Port())
	b := make([]byte, 40)
	b[0], b[6], b[7] = 0x60, protocol, 64
	copy(b[8:], from.AsSlice())
	copy(b[24:], to.Addr().AsSlice())
	for _, header := range args[3:] {
		ext := []byte{b[6], 0, 1, 4, 0, 0, 0, 0} // padding
		switch header {
		case "hop":
			b[6] = 0
		case "destination":
			b[6] = 60
		case "fragment":
			b[6], ext = 44, []byte{b[6], 0, 0, 1, 0, 0, 0, 1}
		case "routing":
			b[6] = 43
			a := netip.MustParseAddr("2606:4700::1111").As16()
			ext = append([]byte{ext[0], 2, 4, 1, 0, 0, 0, 0}, a[:]...)
		}
		payload = append(ext, payload...)
	}
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return "sent", unix.Sendto(fd, append(b, payload...), 0, &unix.SockaddrInet6{Addr: to.Addr().As16()})
}

// frame puts a packet onto the loopback, past what is done with output.
func frame(args []string) (string, error) {
	b, _ := packet4(args)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return "sent", unix.Sendto(fd, b, 0, &unix.SockaddrLinklayer{Protocol: 8, Ifindex: 1, Halen: 6})
}

// frameOut puts a packet onto the interface that is no loopback, for the host's end.
func frameOut(args []string) (string, error) {
	b, _ := packet4(args)
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	for _, i := range all {
		if len(i.HardwareAddr) == 6 {
			to := &unix.SockaddrLinklayer{Protocol: 8, Ifindex: i.Index, Halen: 6}
			copy(to.Addr[:], i.HardwareAddr)
			to.Addr[5] = 0 // as the host's end has it
			return "sent", unix.Sendto(fd, b, 0, to)
		}
	}
	return "", errors.New("no such interface")
}

// icmp asks for an echo, by a socket of each kind that there is for it.
func icmp(args []string) (string, error) {
	a := netip.MustParseAddr(args[0])
	family, protocol, kind := unix.AF_INET, unix.IPPROTO_ICMP, byte(8)
	var sa unix.Sockaddr = &unix.SockaddrInet4{}
	if a.Is4() {
		sa.(*unix.SockaddrInet4).Addr = a.As4()
	} else {
		family, protocol, kind, sa = unix.AF_INET6, unix.IPPROTO_ICMPV6, 128, &unix.SockaddrInet6{Addr: a.As16()}
	}
	var errs []error
	for _, t := range []int{unix.SOCK_DGRAM, unix.SOCK_RAW} {
		fd, err := unix.Socket(family, t, protocol)
		if err == nil {
			b := []byte{kind, 0, 0, 0, 1, 1, 1, 1}
			binary.BigEndian.PutUint16(b[2:], checksum(b))
			err = unix.Sendto(fd, b, 0, sa)
			_ = unix.Close(fd)
		}
		if err == nil {
			return "sent", nil
		}
		errs = append(errs, err)
	}
	return "", errors.New(errs[0].Error() + ", " + errs[1].Error())
}

func writeSysctl([]string) (string, error) {
	return "written", os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
}
