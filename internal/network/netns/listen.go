package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The ports that are tried first: datagrams of a flow that the kernel still knows go
// to the same port after a restart.
const (
	portTCP = 63080
	portDNS = 63053
)

// listen opens the listeners on the gateway's addresses, in the thread's namespace.
func (n *Namespace) listen(families []family) error {
	for _, f := range families {
		tcp, err := listenTCP(f, portTCP)
		if err != nil {
			return err
		}
		n.TCP = append(n.TCP, tcp)
		n.DNS = append(n.DNS, DNS{})
		dns := &n.DNS[len(n.DNS)-1]
		// Not assigned at once: an interface with a nil pointer in it is not nil.
		if tcp, err = listenTCP(f, portDNS); err != nil {
			return err
		}
		dns.TCP = tcp
		udp, err := listenUDP(f, portDNS)
		if err != nil {
			return err
		}
		dns.UDP = udp
	}
	return nil
}

// targets is where packets of the families go, in their order.
func (n *Namespace) targets(families []family) []target {
	var all []target
	for i, f := range families {
		all = append(all, target{
			family: f,
			tcp:    n.TCP[i].Addr().(*net.TCPAddr).AddrPort().Port(),
			dnsTCP: n.DNS[i].TCP.Addr().(*net.TCPAddr).AddrPort().Port(),
			dnsUDP: n.DNS[i].UDP.LocalAddr().(*net.UDPAddr).AddrPort().Port(),
		})
	}
	return all
}

// listenTCP listens on the port, or on any if a program of the sandbox has it.
func listenTCP(f family, port uint16) (net.Listener, error) {
	// No keep-alives: the peer is on the same machine.
	c := net.ListenConfig{KeepAlive: -1}
	c.SetMultipathTCP(false) // its sockets know no original destination
	var l net.Listener
	err := onPort(port, func(port uint16) (err error) {
		l, err = c.Listen(context.Background(), "tcp"+f.suffix, netip.AddrPortFrom(f.gateway, port).String())
		return err
	})
	return l, err
}

// listenUDP is listenTCP for datagrams.
func listenUDP(f family, port uint16) (net.PacketConn, error) {
	var c net.PacketConn
	err := onPort(port, func(port uint16) (err error) {
		c, err = net.ListenUDP("udp"+f.suffix, net.UDPAddrFromAddrPort(netip.AddrPortFrom(f.gateway, port)))
		return err
	})
	return c, err
}

func onPort(port uint16, listen func(uint16) error) error {
	err := listen(port)
	if errors.Is(err, unix.EADDRINUSE) {
		err = listen(0)
	}
	if err != nil {
		return fmt.Errorf("listen in the network namespace: %w", err)
	}
	return nil
}
