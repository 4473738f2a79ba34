package testnet

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Space is a network namespace with its loopback up.
type Space struct {
	file *os.File
}

// newSpace makes one.
func newSpace() (*Space, error) {
	var s *Space
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		s, err = thisSpace()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	return s, nil
}

// thisSpace is the calling thread's.
func thisSpace() (*Space, error) {
	f, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &Space{f}, nil
}

// onThread runs f on a thread of its own, which ends with it.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread does not end, and is kept busy until another has done it.
			defer runtime.UnlockOSThread()
			done <- onThread(f)
			return
		}
		done <- f() // and never unlocked
	}()
	return <-done
}

// File is the namespace, for setns and its like. It is closed with the internet.
func (s *Space) File() *os.File { return s.file }

// Close lets go of the namespace. It ends with the last socket and process in it.
func (s *Space) Close() error { return s.file.Close() }

// Do runs f on a thread that is in the namespace. Sockets that f makes stay in it,
// and so do the processes that it starts; goroutines do not.
func (s *Space) Do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(s.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

// Start starts a command in the namespace. Its Pdeathsig must not be set: the
// thread that starts it ends.
func (s *Space) Start(cmd *exec.Cmd) error { return s.Do(cmd.Start) }

// Run starts a command in the namespace and returns what it prints.
func (s *Space) Run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var out []byte
	err := s.Do(func() (err error) {
		out, err = cmd.CombinedOutput()
		return err
	})
	return string(out), err
}

// DialContext connects from the namespace to an address with no name in it.
func (s *Space) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := s.Do(func() (err error) {
		// Without a race of two families, whose sockets other threads would make.
		d := net.Dialer{FallbackDelay: -1}
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Listen listens in the namespace.
func (s *Space) Listen(network, address string) (net.Listener, error) {
	var l net.Listener
	err := s.Do(func() (err error) {
		l, err = net.Listen(network, address)
		return err
	})
	return l, err
}

// ListenPacket listens for datagrams in the namespace.
func (s *Space) ListenPacket(network, address string) (net.PacketConn, error) {
	var c net.PacketConn
	err := s.Do(func() (err error) {
		c, err = net.ListenPacket(network, address)
		return err
	})
	return c, err
}
