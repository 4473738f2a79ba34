package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"
)

// ping sends an ICMP echo and waits for its answer.
func ping(to string) (string, error) {
	a, err := netip.ParseAddr(to)
	if err != nil {
		return "", err
	}
	network, message := "ip4:icmp", []byte{8, 0, 0, 0, 0, 1, 0, 1}
	if a.Is6() {
		network, message = "ip6:ipv6-icmp", []byte{128, 0, 0, 0, 0, 1, 0, 1} // the kernel adds the checksum
	} else {
		binary.BigEndian.PutUint16(message[2:], checksum(message))
	}
	c, err := net.Dial(network, to)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(message); err != nil {
		return "", err
	}
	_, err = c.Read(make([]byte, 64))
	return "", err
}

func checksum(b []byte) uint16 {
	sum := uint32(0)
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// rawSYN sends a SYN that the kernel's TCP knows nothing of. That it could be sent
// says nothing about whether it arrives.
func rawSYN(to string) (string, error) {
	target, err := netip.ParseAddrPort(to)
	if err != nil {
		return "", err
	}
	syn := make([]byte, 20)
	binary.BigEndian.PutUint16(syn, 40000)
	binary.BigEndian.PutUint16(syn[2:], target.Port())
	syn[12], syn[13], syn[14] = 5<<4, 2, 0x40
	network := "ip4:tcp"
	if target.Addr().Is6() {
		network = "ip6:tcp"
	}
	c, err := net.Dial(network, target.Addr().String())
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	local := netip.MustParseAddr(c.LocalAddr().String())
	pseudo := append(append(local.AsSlice(), target.Addr().AsSlice()...), 0, 6, 0, 20)
	binary.BigEndian.PutUint16(syn[16:], checksum(append(pseudo, syn...)))
	_, err = c.Write(syn)
	return "sent", err
}

// frame sends an IPv4 packet as an Ethernet frame, past all routes and filters of the
// sender, on every interface.
func frame() (string, error) {
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = syscall.Close(fd) }()
	links, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	packet := append(make([]byte, 12), 0x08, 0x00)
	ip := make([]byte, 28)
	ip[0], ip[3], ip[8], ip[9] = 0x45, 28, 64, 17
	copy(ip[12:], []byte{192, 0, 2, 2, 93, 184, 216, 34})
	binary.BigEndian.PutUint16(ip[10:], checksum(ip[:20]))
	copy(ip[20:], []byte{0, 99, 0, 53, 0, 8, 0, 0})
	var names []string
	var errs []error
	for _, l := range links {
		errs = append(errs, syscall.Sendto(fd, append(packet, ip...), 0, &syscall.SockaddrLinklayer{Ifindex: l.Index, Halen: 6}))
		names = append(names, l.Name)
	}
	return strings.Join(names, " "), errors.Join(errs...)
}

// lookUps asks for so many names below one, and tells how many have addresses.
func lookUps(count, below, server string) (string, error) {
	n, err := strconv.Atoi(count)
	if err != nil {
		return "", err
	}
	found := 0
	for i := range n {
		told, err := lookUp(fmt.Sprintf("n%d.%s", i, below), server)
		if err != nil {
			return "", err
		}
		if len(strings.Fields(told)) > 2 {
			found++
		}
	}
	return strconv.Itoa(found), nil
}

// lookUp asks for both kinds of addresses and tells the status and the answers.
func lookUp(name, server string) (string, error) {
	var told []string
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		c := dns.Client{Net: "udp", Timeout: patience}
		m, _, err := c.Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), kind), server)
		if err != nil {
			return "", err
		}
		told = append(told, dns.RcodeToString[m.Rcode])
		for _, rr := range m.Answer {
			switch rr := rr.(type) {
			case *dns.A:
				told = append(told, rr.A.String())
			case *dns.AAAA:
				told = append(told, rr.AAAA.String())
			default:
				told = append(told, fmt.Sprintf("%T", rr))
			}
		}
	}
	return strings.Join(told, " "), nil
}
