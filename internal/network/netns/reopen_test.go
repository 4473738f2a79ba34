package netns

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// TestDaemonGone: what begins while nobody answers waits, and succeeds when somebody
// does again.
func TestDaemonGone(t *testing.T) {
	b := newBox(t)
	n := b.open(Options{Decide: (*Packet).Accept})
	connections := b.acceptAll(n)
	open, err := b.dial(net.Dialer{}, "tcp", outside[0])
	if err != nil {
		t.Fatal(err)
	}
	// The listener's side ends first, and has a socket that waits then.
	in := wait(t, connections)
	in.Close()
	if _, err := io.ReadAll(open); err != nil {
		t.Fatal(err)
	}
	open.Close()
	n.Close()

	fd := b.connecting(outside[0])
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	if k, err := unix.Poll(p, 0); k != 0 || err != nil {
		t.Errorf("without anybody the connection got an answer: %v", err)
	}
	n = b.open(Options{Decide: (*Packet).Accept})
	connections = b.acceptAll(n)
	if err := connected(t, fd); err != nil {
		t.Errorf("after opening again: %v", err)
	}
	if a := wait(t, connections).original; a.String() != outside[0] {
		t.Errorf("the original destination is %v", a)
	}
	for _, to := range outside {
		if _, err := b.dial(net.Dialer{}, "tcp", to); err != nil {
			t.Errorf("%s, after opening again: %v", to, err)
		}
	}
}

// Without the table nothing is sent to the listeners, nor anywhere else.
func TestTableGone(t *testing.T) {
	b := newBox(t)
	n := b.open(Options{Decide: (*Packet).Accept})
	b.do(removeTable)
	connections := b.acceptAll(n)
	fd := b.connecting(outside[0])
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	if k, err := unix.Poll(p, 0); k != 0 || err != nil {
		t.Errorf("the connection got an answer: %v", err)
	}
	n.Close()
	if len(connections) != 0 {
		t.Error("a connection came to the listener")
	}
	b.open(Options{})
	if err := connected(t, fd); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("something answered in between: %v", err)
	}
}

// Verdicts that come after the end do nothing, and packets without one are dropped.
func TestVerdictAfterClose(t *testing.T) {
	b := newBox(t)
	packets := make(chan *Packet, 64)
	n := b.open(Options{Decide: func(p *Packet) { packets <- p }})
	fd := b.connecting(outside[0])
	p := wait(t, packets)
	n.Close()
	p.Accept()
	again := b.open(Options{})
	if err := connected(t, fd); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("the packet that is sent again is not asked about: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if err := again.Close(); err == nil {
		t.Error("it was closed twice")
	}
}

// A program of the sandbox may have the ports.
func TestPortsTaken(t *testing.T) {
	b := newBox(t)
	b.do(func() error {
		for _, port := range []string{":63080", ":63053"} {
			l, err := net.Listen("tcp", port)
			if err != nil {
				return err
			}
			t.Cleanup(func() { l.Close() })
			p, err := net.ListenPacket("udp", port)
			if err != nil {
				return err
			}
			t.Cleanup(func() { p.Close() })
		}
		return nil
	})
	n := b.open(Options{Decide: (*Packet).Accept})
	connections := b.acceptAll(n)
	for _, to := range outside {
		if _, err := b.dial(net.Dialer{}, "tcp", to); err != nil {
			t.Errorf("%s: %v", to, err)
		}
		wait(t, connections)
	}
}

func TestRemove(t *testing.T) {
	b := newBox(t)
	for range 2 {
		n := b.open(Options{})
		if _, err := b.dial(net.Dialer{}, "tcp", outside[0]); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("opened: %v", err)
		}
		if err := n.Remove(); err != nil {
			t.Fatal(err)
		}
		b.unreachable()
	}
}

// unreachable checks that there is no network.
func (b box) unreachable() {
	b.t.Helper()
	for _, to := range outside {
		if _, err := b.dial(net.Dialer{}, "tcp", to); !errors.Is(err, unix.ENETUNREACH) {
			b.t.Errorf("%s: %v", to, err)
		}
	}
}

// TestTrap101NetlinkError: an error of netlink leaves the namespace without a way
// out, and the next transaction has a connection of its own.
func TestTrap101NetlinkError(t *testing.T) {
	broken := errors.New("injected")
	orig := transaction
	defer func() { transaction = orig }()
	made := 0
	fail := func() (*nftables.Conn, error) {
		made++
		return nftables.New(nftables.WithTestDial(func([]netlink.Message) ([]netlink.Message, error) { return nil, broken }))
	}

	b := newBox(t)
	transaction = fail
	if _, err := Open(b.ns, Options{Decide: (*Packet).Accept}); !errors.Is(err, broken) {
		t.Fatalf("opened with a broken netlink: %v", err)
	}
	b.unreachable()

	transaction = orig
	n := b.open(Options{Decide: (*Packet).Accept})
	connections := b.acceptAll(n)
	if _, err := b.dial(net.Dialer{}, "tcp", outside[0]); err != nil {
		t.Errorf("the next one: %v", err)
	}
	wait(t, connections)
	n.Close()

	transaction = fail
	if _, err := Open(b.ns, Options{Decide: (*Packet).Accept}); !errors.Is(err, broken) {
		t.Fatalf("opened again with a broken netlink: %v", err)
	}
	if made != 2 {
		t.Errorf("%d connections for 2 transactions", made)
	}
	fd := b.connecting(outside[0])
	transaction = orig
	b.open(Options{})
	if err := connected(t, fd); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("something answered in between: %v", err)
	}
}

// No thread of the process stays in a namespace that it entered.
func TestThreadsGoHome(t *testing.T) {
	b := newBox(t)
	b.open(Options{}).Close()
	want, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	threads, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil || len(threads) == 0 {
		t.Fatal("no threads", err)
	}
	for _, thread := range threads {
		if got, err := os.Readlink(thread); err == nil && got != want {
			t.Errorf("%s is %s", thread, got)
		}
	}
}
