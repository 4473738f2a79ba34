package veth

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/netns"
	"github.com/exec-server/exec-server/internal/network/testnet"
)

func TestMain(m *testing.M) {
	if os.Getenv(daemonMark) != "" {
		os.Exit(daemon())
	}
	testnet.Main(m)
}

// patience is how long a test waits for what has to come.
const patience = 30 * time.Second

// guest is a network namespace like a container's.
type guest struct {
	t  *testing.T
	ns *os.File
}

func newGuest(t *testing.T) guest {
	t.Helper()
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1 << 20, Size: 1 << 16}}
	c := exec.Command("sleep", "infinity")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET, UidMappings: ids, GidMappings: ids, Pdeathsig: syscall.SIGKILL,
	}
	runtime.LockOSThread() // its death is about this thread
	defer runtime.UnlockOSThread()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Process.Kill(), c.Wait() })
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	return guest{t, ns}
}

func (g guest) do(f func() error) {
	g.t.Helper()
	if err := netns.Within(g.ns, f); err != nil {
		g.t.Fatal(err)
	}
}

// dial connects a socket for datagrams.
func (g guest) dial(to netip.Addr, port uint16) net.Conn {
	g.t.Helper()
	var c net.Conn
	g.do(func() (err error) {
		c, err = net.Dial("udp", netip.AddrPortFrom(to, port).String())
		return err
	})
	g.t.Cleanup(func() { _ = c.Close() })
	return c
}

// echo sends a datagram to who sends it back.
func echo(c net.Conn) error {
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte("hello")); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 9))
	return err
}

// frame puts a packet on the link, past all that the namespace has for packets.
func (g guest) frame(l *Link, packet []byte) {
	g.t.Helper()
	ethertype := uint16(unix.ETH_P_IP)
	if packet[0]>>4 == 6 {
		ethertype = unix.ETH_P_IPV6
	}
	g.do(func() error {
		end, err := net.InterfaceByName(netns.Link)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		b := append(append([]byte{}, l.mac(0)...), l.mac(1)...)
		b = append(binary.BigEndian.AppendUint16(b, ethertype), packet...)
		return unix.Sendto(fd, b, 0, &unix.SockaddrLinklayer{Ifindex: end.Index, Halen: 6})
	})
}

// made is a packet as it can be made by hand.
func made(src, dst netip.Addr, protocol byte, data ...byte) []byte {
	if src.Is6() {
		b := append(binary.BigEndian.AppendUint16([]byte{0x60, 0, 0, 0}, uint16(len(data))), protocol, 64)
		return append(append(append(b, src.AsSlice()...), dst.AsSlice()...), data...)
	}
	b := append([]byte{0x45, 0}, binary.BigEndian.AppendUint16(nil, uint16(20+len(data)))...)
	b = append(b, 0, 0, 0, 0, 64, protocol, 0, 0)
	b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	return append(b, data...)
}

// datagram is one of UDP, without a checksum for IPv4.
func datagram(src, dst netip.Addr, port uint16) []byte {
	data := []byte{0x10, 0, byte(port >> 8), byte(port), 0, 9, 0, 0, 'x'}
	if src.Is6() {
		sum := append(append(src.AsSlice(), dst.AsSlice()...), 0, 0, 0, 9, 0, 0, 0, unix.IPPROTO_UDP)
		binary.BigEndian.PutUint16(data[6:], checksum(append(sum, data...)))
	}
	return made(src, dst, unix.IPPROTO_UDP, data...)
}

func all4and6(a, b netip.Addr) []netip.Addr { return []netip.Addr{a, b} }

// openHost opens the host's side until the end of the test.
func openHost(t *testing.T, o Options) *Host {
	t.Helper()
	o.Log = zerolog.New(zerolog.NewTestWriter(t))
	if o.Instance == "" {
		o.Instance = t.Name()
	}
	h, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
		h.nothingLeft(t)
	})
	return h
}

// nothingLeft looks for what the daemon has made.
func (h *Host) nothingLeft(t *testing.T) {
	t.Helper()
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if strings.HasPrefix(l.Attrs().Name, h.prefix) {
			t.Errorf("%s is left", l.Attrs().Name)
		}
	}
	if h.exists() {
		t.Errorf("the table %s is left", h.table)
	}
}

// mustAdd makes a link for which f decides.
func (h *Host) mustAdd(g guest, name string, f func(*Packet)) *Link {
	g.t.Helper()
	l, err := h.Add(LinkOptions{Name: name, Netns: g.ns, Decide: f})
	if err != nil {
		g.t.Fatal(err)
	}
	return l
}

func accepting(p *Packet) { p.Accept() }

// Of a process of its own, which a test kills.
const daemonMark = "EXEC_SERVER_VETH_DAEMON"

// daemon makes a link for the namespace that is its descriptor 3, and waits.
func daemon() int {
	h, err := Open(Options{Instance: os.Getenv(daemonMark), Log: zerolog.Nop()})
	if err == nil {
		_, err = h.Add(LinkOptions{Name: "one", Netns: os.NewFile(3, "netns"), Decide: accepting})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	<-context.Background().Done()
	return 0
}
