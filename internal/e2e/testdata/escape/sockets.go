package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const patience = 3 * time.Second

// tcp connects, says something, and tells what it hears.
func tcp(args []string) (string, error) { return dial(args[0], nil) }

func dial(to string, prepare func(fd int) error) (string, error) {
	a, err := netip.ParseAddrPort(to)
	if err != nil {
		return "", err
	}
	family := unix.AF_INET6
	var sa unix.Sockaddr = &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
	if a.Addr().Is4() {
		family, sa = unix.AF_INET, &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	t := unix.NsecToTimeval(int64(patience))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &t)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &t)
	if prepare != nil {
		if err := prepare(fd); err != nil {
			return "", fmt.Errorf("before: %w", err)
		}
	}
	if err := unix.Connect(fd, sa); err != nil {
		return "", err
	}
	if _, err := unix.Write(fd, []byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		return "", err
	}
	b := make([]byte, 12)
	n, err := unix.Read(fd, b)
	if err == nil && n == 0 {
		err = errors.New("EOF")
	}
	if err != nil {
		return "", err
	}
	return strconv.Quote(string(b[:n])), nil
}

// marked connects with the mark of what is allowed.
func marked(args []string) (string, error) {
	return dial(args[0], func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 1) })
}

// routed connects by way of another address (loose source routing, or a routing header).
func routed(args []string) (string, error) {
	via, err := netip.ParseAddr(args[1])
	if err != nil {
		return "", err
	}
	return dial(args[0], func(fd int) error {
		if via.Is4() {
			a := via.As4()
			return unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, string([]byte{131, 7, 4, a[0], a[1], a[2], a[3], 0}))
		}
		a := via.As16()
		return unix.SetsockoptString(fd, unix.IPPROTO_IPV6, unix.IPV6_RTHDR, string(append([]byte{0, 2, 4, 1, 0, 0, 0, 0}, a[:]...)))
	})
}

// udp sends a datagram and waits for one.
func udp(args []string) (string, error) {
	c, err := net.Dial("udp", args[0])
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		return "", err
	}
	_ = c.SetDeadline(time.Now().Add(patience / 3))
	b := make([]byte, 100)
	n, err := c.Read(b)
	return strconv.Quote(string(b[:n])), err
}

// send sends by a protocol of IP's that is neither.
func send(args []string) (string, error) {
	protocol, _ := strconv.Atoi(args[0])
	kind := unix.SOCK_RAW
	switch protocol {
	case unix.IPPROTO_SCTP:
		kind = unix.SOCK_STREAM
	case unix.IPPROTO_UDPLITE:
		kind = unix.SOCK_DGRAM
	}
	a := netip.MustParseAddr(args[1])
	family, sa := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Addr: [4]byte{}, Port: 9})
	if a.Is4() {
		sa.(*unix.SockaddrInet4).Addr = a.As4()
	} else {
		family, sa = unix.AF_INET6, &unix.SockaddrInet6{Addr: a.As16()}
	}
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if kind == unix.SOCK_STREAM {
		if err := unix.SetNonblock(fd, true); err != nil {
			return "", err
		}
		err = unix.Connect(fd, sa)
		if err == unix.EINPROGRESS {
			time.Sleep(patience / 10)
			n, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			return "", fmt.Errorf("in progress, %w", unix.Errno(n))
		}
		return "connected", err
	}
	return "sent", unix.Sendto(fd, []byte("hello"), 0, sa)
}

// families tells which families of sockets there are.
func families([]string) (string, error) {
	var all []string
	for f := range 50 {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
			fd, err := unix.Socket(f, kind, 0)
			if err == nil {
				_ = unix.Close(fd)
				all = append(all, strconv.Itoa(f))
				break
			}
		}
	}
	if len(all) == 0 {
		return "", errors.New("none")
	}
	return strings.Join(all, " "), nil
}

// vsock connects to the machine's hypervisor.
func vsock([]string) (string, error) {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return "a socket", unix.Connect(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_HOST, Port: 1024})
}

// uring makes a ring, whose operations no filter of system calls sees.
func uring([]string) (string, error) {
	var params [120]byte
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return "", errno
	}
	_ = unix.Close(int(fd))
	return "a ring", nil
}

// tun opens a device that makes interfaces.
func tun([]string) (string, error) {
	path := "/dev/net/tun"
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		// As root one may make the node.
		path = "/tmp/tun"
		if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(10, 200))); err != nil {
			return "", err
		}
		defer os.Remove(path)
		if f, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
			return "", err
		}
	}
	return "opened", f.Close()
}

func connectUnix(args []string) (string, error) {
	c, err := net.DialTimeout("unix", args[0], patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	b := make([]byte, 16)
	if _, err := c.Write([]byte("\x00\x00\x00\x02{}")); err != nil {
		return "", err
	}
	n, err := c.Read(b)
	return strconv.Quote(string(b[:n])), err
}

// listAbstract lists the sockets of the namespace that are in no file system.
func listAbstract([]string) (string, error) {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return "", err
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if i := strings.Index(line, " @"); i >= 0 {
			found = append(found, strings.TrimSpace(line[i:]))
		}
	}
	if len(found) == 0 {
		return "", errors.New("none")
	}
	return strings.Join(found, " "), nil
}
