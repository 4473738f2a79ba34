package testnet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
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
