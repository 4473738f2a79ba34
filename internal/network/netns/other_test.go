package netns

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// QUIC and other UDP get an error of ICMP at once, so that programs fall back.
func TestUDPIsRefused(t *testing.T) {
	b := newBox(t)
	denied := make(chan Flow, 64)
	b.open(Options{Denied: func(f Flow) { denied <- f }})
	for _, to := range outside {
		c, err := b.dial(net.Dialer{}, "udp", to)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err = c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v", to, err)
		}
		if f := wait(t, denied); f.Dst.String() != to || f.Protocol != unix.IPPROTO_UDP || f.Src.String() != c.LocalAddr().String() {
			t.Errorf("%s: told of %+v", to, f)
		}
	}
}

// What is neither TCP nor UDP is not permitted.
func TestOtherProtocols(t *testing.T) {
	b := newBox(t)
	denied := make(chan Flow, 64)
	b.open(Options{Denied: func(f Flow) { denied <- f }})
	for _, s := range []struct {
		name           string
		domain, typ, p int
		to             string
	}{
		{"ping", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, outside4},
		{"ping, IPv6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6, outside6},
		{"SCTP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_SCTP, outside4},
		{"SCTP, IPv6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_SCTP, outside6},
		{"UDP-Lite", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_UDPLITE, outside4},
		{"GRE", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_GRE, outside4},
		{"IP in IP", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_IPIP, outside6},
	} {
		err := within(b.ns, func() error {
			fd, err := unix.Socket(s.domain, s.typ|unix.SOCK_CLOEXEC, s.p)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			data := make([]byte, 40)
			data[0] = 8 // an echo request, for ICMP
			if s.p == unix.IPPROTO_ICMPV6 {
				data[0] = 128
			}
			return unix.Sendto(fd, data, 0, sockaddr(s.to, 0))
		})
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: %v", s.name, err)
		}
		if f := wait(t, denied); int(f.Protocol) != s.p || f.Dst.Addr().String() != s.to {
			t.Errorf("%s: told of %+v", s.name, f)
		}
	}
}

func sockaddr(addr string, port int) unix.Sockaddr {
	a := netip.MustParseAddr(addr)
	if a.Is4() {
		return &unix.SockaddrInet4{Addr: a.As4(), Port: port}
	}
	return &unix.SockaddrInet6{Addr: a.As16(), Port: port}
}

func TestDNS(t *testing.T) {
	b := newBox(t)
	n := b.open(Options{})
	for _, d := range n.DNS {
		go func() {
			buf := make([]byte, 512)
			for {
				k, from, err := d.UDP.ReadFrom(buf)
				if err != nil {
					return
				}
				d.UDP.WriteTo(append([]byte("answer to "), buf[:k]...), from)
			}
		}()
		go func() {
			for {
				c, err := d.TCP.Accept()
				if err != nil {
					return
				}
				c.Write([]byte("answer to question"))
				c.Close()
			}
		}()
	}
	for _, network := range []string{"udp", "tcp"} {
		for _, server := range []string{outside4, outside6, Gateway4.String(), Gateway6.String()} {
			c, err := b.dial(net.Dialer{}, network, net.JoinHostPort(server, "53"))
			if err != nil {
				t.Errorf("%s %s: %v", network, server, err)
				continue
			}
			c.Write([]byte("question"))
			buf := make([]byte, 512)
			k, err := c.Read(buf)
			if err != nil || string(buf[:k]) != "answer to question" {
				t.Errorf("%s %s: %q, %v", network, server, buf[:k], err)
			}
		}
	}
}
