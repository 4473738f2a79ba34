package netns

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/testroot"
)

// patience is how long a test waits for what has to come.
const patience = 30 * time.Second

// Addresses that nobody has.
const (
	outside4 = "198.51.100.1"
	outside6 = "2001:db8::1"
)

// box is a network namespace like a container's: one that a user namespace owns.
type box struct {
	t  *testing.T
	ns *os.File
}

func newBox(t *testing.T) box {
	testroot.Need(t)
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1 << 20, Size: 1 << 16}}
	c := exec.Command("sleep", "infinity")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: ids, GidMappings: ids,
		Pdeathsig: syscall.SIGKILL,
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return box{t, ns}
}

// open opens the namespace, until the end of the test.
func (b box) open(o Options) *Namespace {
	b.t.Helper()
	if o.Decide == nil {
		o.Decide = (*Packet).Refuse
	}
	n, err := Open(b.ns, o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { n.Close() })
	return n
}

// do runs f in the namespace.
func (b box) do(f func() error) {
	b.t.Helper()
	if err := within(b.ns, f); err != nil {
		b.t.Fatal(err)
	}
}

// dial dials in the namespace.
func (b box) dial(d net.Dialer, network, address string) (c net.Conn, err error) {
	d.Timeout = patience
	err = within(b.ns, func() (err error) {
		c, err = d.Dial(network, address)
		return err
	})
	if c != nil {
		b.t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(patience))
	}
	return c, err
}

// accepted is a connection of one of the listeners.
type accepted struct {
	net.Conn
	original netip.AddrPort
}

// acceptAll accepts what comes to the listeners.
func (b box) acceptAll(n *Namespace) <-chan accepted {
	all := make(chan accepted, 64)
	for _, l := range n.TCP {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				a, err := Original(c)
				if err != nil {
					b.t.Errorf("original destination: %v", err)
				}
				all <- accepted{c, a}
			}
		}()
	}
	return all
}

// wait takes what has to come.
func wait[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatal("it did not come")
	}
	return v
}

// connecting starts a connection and returns its socket when the first packet was
// sent.
func (b box) connecting(address string) int {
	b.t.Helper()
	a := netip.MustParseAddrPort(address)
	var fd int
	b.do(func() (err error) {
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		err = unix.Connect(fd, &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())})
		if err != unix.EINPROGRESS {
			return fmt.Errorf("connect: %v", err)
		}
		return nil
	})
	b.t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// connected waits for the end of connecting.
func connected(t *testing.T, fd int) error {
	t.Helper()
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	for end := time.Now().Add(patience); ; {
		n, err := unix.Poll(p, int(time.Until(end).Milliseconds()))
		switch {
		case err == unix.EINTR:
		case err != nil || n == 0:
			t.Fatalf("the connection is not made: %d, %v", n, err)
		default:
			e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			if err != nil {
				t.Fatal(err)
			}
			if e != 0 {
				return unix.Errno(e)
			}
			return nil
		}
	}
}
