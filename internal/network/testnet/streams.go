package testnet

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Banner is what a server-first protocol says, on port 22.
const Banner = "SSH-2.0-testnet\r\n"

// serve runs a server over l until the internet is closed, which waits for it.
func (n *Internet) serve(l io.Closer, run func() error) {
	done := make(chan error, 1)
	go func() { done <- run() }()
	n.closers = append(n.closers, closer(func() error {
		_ = l.Close()
		if err := <-done; err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}))
}

type closer func() error

func (c closer) Close() error { return c() }

// ServeTCP has f serve the connections to a port of every address of the world. They
// are closed when it returns, and at the end of the internet.
func (n *Internet) ServeTCP(port uint16, f func(net.Conn)) error {
	l, err := n.World.Listen("tcp", ":"+strconv.Itoa(int(port)))
	if err != nil {
		return err
	}
	var mu sync.Mutex // guards open
	open := map[net.Conn]bool{}
	var running sync.WaitGroup
	n.serve(l, func() error {
		for {
			c, err := l.Accept()
			if err != nil {
				mu.Lock()
				for c := range open {
					_ = c.Close()
				}
				mu.Unlock()
				running.Wait()
				return err
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			running.Go(func() {
				f(c)
				_ = c.Close()
				mu.Lock()
				delete(open, c)
				mu.Unlock()
			})
		}
	})
	return nil
}

// serveStreams starts what is neither DNS nor HTTP.
func (n *Internet) serveStreams() error {
	return errors.Join(
		n.ServeTCP(22, func(c net.Conn) {
			_, _ = io.WriteString(c, Banner)
			_, _ = io.Copy(c, c)
		}),
		n.ServeTCP(7, func(c net.Conn) { _, _ = io.Copy(c, c) }),
		n.ServeTCP(9, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
	)
}

// serveDatagrams sends back whatever comes, from the address that it was sent to.
func (n *Internet) serveDatagrams(ports ...int) error {
	for _, port := range ports {
		for _, family := range []string{"4", "6"} {
			c, err := n.World.ListenPacket("udp"+family, ":"+strconv.Itoa(port))
			if err != nil {
				return err
			}
			conn := c.(*net.UDPConn)
			if err := tellAddress(conn, family); err != nil {
				return errors.Join(err, c.Close())
			}
			n.serve(c, func() error { return echo(conn) })
		}
	}
	return nil
}

// tellAddress has each datagram come with the address that it was sent to.
func tellAddress(c *net.UDPConn, family string) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if family == "4" {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		} else {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		}
	})
	return errors.Join(err, failed)
}

func echo(c *net.UDPConn) error {
	data, about := make([]byte, 65536), make([]byte, 256)
	for {
		size, told, _, from, err := c.ReadMsgUDPAddrPort(data, about)
		if err != nil {
			return err
		}
		// What came with it says, sent back, where it shall come from.
		_, _, _ = c.WriteMsgUDPAddrPort(data[:size], about[:told], from)
	}
}
