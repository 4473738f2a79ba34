package testnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Capture sees every IP packet that leaves the host.
type Capture struct {
	t    testing.TB
	host *Space
	file *os.File

	mu      sync.Mutex // guards what follows
	packets []Packet
	marks   map[string]chan struct{}
}

// Packet is one that has left the host. The kernel's own talk about neighbours and
// multicast groups is none.
type Packet struct {
	Protocol string // "tcp", "udp", "icmp" (of both versions), or a number
	From, To netip.AddrPort
	SYN      bool
}

// barrier is where marks are sent to; nobody listens there.
var barrier = netip.MustParseAddrPort("198.18.0.1:9")

// Capture looks at what leaves the host from now on, until the test ends.
func (n *Internet) Capture(t testing.TB) *Capture {
	t.Helper()
	c := &Capture{t: t, host: n.Host, marks: map[string]chan struct{}{}}
	err := n.World.Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(hton(unix.ETH_P_ALL)))
		if err != nil {
			return err
		}
		c.file = os.NewFile(uintptr(fd), "capture")
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
	})
	if err != nil {
		t.Fatalf("capture: %v", err)
	}
	done := make(chan struct{})
	go func() { defer close(done); c.read() }()
	t.Cleanup(func() { _ = c.file.Close(); <-done })
	return c
}

func hton(v uint16) uint16 { return v<<8 | v>>8 }

func (c *Capture) read() {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return
	}
	data := make([]byte, 128)
	for {
		var size int
		var from unix.Sockaddr
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			size, from, failed = unix.Recvfrom(int(fd), data, 0)
			return !errors.Is(failed, unix.EAGAIN)
		})
		if err != nil || failed != nil {
			return
		}
		if link, ok := from.(*unix.SockaddrLinklayer); ok && link.Pkttype != unix.PACKET_OUTGOING {
			c.add(data[:size])
		}
	}
}

// add takes a packet in.
func (c *Capture) add(data []byte) {
	p, rest, ok := parse(data)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.To == barrier && len(rest) >= 16 {
		if seen := c.marks[string(rest[8:16])]; seen != nil {
			close(seen)
		}
		return
	}
	c.packets = append(c.packets, p)
}

// parse reads the headers of a packet; rest begins with that of its transport.
func parse(data []byte) (p Packet, rest []byte, ok bool) {
	var number byte
	var from, to netip.Addr
	switch {
	case len(data) >= 20 && data[0]>>4 == 4:
		number, rest = data[9], data[min(len(data), int(data[0]&15)*4):]
		from, to = netip.AddrFrom4([4]byte(data[12:16])), netip.AddrFrom4([4]byte(data[16:20]))
	case len(data) >= 40 && data[0]>>4 == 6:
		number, rest = data[6], data[40:]
		from, to = netip.AddrFrom16([16]byte(data[8:24])), netip.AddrFrom16([16]byte(data[24:40]))
		// Hop-by-hop options come before the reports about groups alone.
		if number == 0 || number == unix.IPPROTO_ICMPV6 && len(rest) > 0 && rest[0] >= 130 {
			return p, nil, false
		}
	default:
		return p, nil, false
	}
	var source, port uint16
	if (number == unix.IPPROTO_TCP || number == unix.IPPROTO_UDP) && len(rest) >= 4 {
		source, port = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	}
	p = Packet{From: netip.AddrPortFrom(from, source), To: netip.AddrPortFrom(to, port)}
	switch number {
	case unix.IPPROTO_TCP:
		p.Protocol, p.SYN = "tcp", len(rest) >= 14 && rest[13]&0x12 == 2
	case unix.IPPROTO_UDP:
		p.Protocol = "udp"
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		p.Protocol = "icmp"
	default:
		p.Protocol = strconv.Itoa(int(number))
	}
	return p, rest, true
}

// Packets returns those that have left the host before the call.
func (c *Capture) Packets() []Packet {
	c.t.Helper()
	seen := make(chan struct{})
	c.mu.Lock()
	mark := fmt.Sprintf("%08d", len(c.marks))
	c.marks[mark] = seen
	c.mu.Unlock()
	err := c.host.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, []byte(mark), 0, &unix.SockaddrInet4{Addr: barrier.Addr().As4(), Port: int(barrier.Port())})
	})
	if err != nil {
		c.t.Fatalf("mark the packets: %v", err)
	}
	select {
	case <-seen:
	case <-time.After(30 * time.Second):
		c.t.Fatal("the capture does not see its own mark")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Packet(nil), c.packets...)
}

// To returns those packets that were sent to an address.
func (c *Capture) To(a netip.Addr) (found []Packet) {
	c.t.Helper()
	for _, p := range c.Packets() {
		if p.To.Addr() == a {
			found = append(found, p)
		}
	}
	return found
}

// Forget forgets what has left so far.
func (c *Capture) Forget() {
	c.Packets()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.packets = nil
}

// String is a packet in a line.
func (p Packet) String() string {
	return strings.Join([]string{p.Protocol, p.From.String(), ">", p.To.String()}, " ")
}
