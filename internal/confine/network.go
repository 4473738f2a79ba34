package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ownNetwork gives the calling thread, and what it starts, a network of which
// nothing but the loopback is there.
func ownNetwork() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("new network namespace: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

// OwnNetwork runs f on a thread of its own, in a network of which nothing but the
// loopback is there.
func OwnNetwork(f func() error) error {
	done := make(chan error, 1)
	OnThread(func() {
		err := ownNetwork()
		if err == nil {
			err = f()
		}
		done <- err
	})
	return <-done
}

// darkNetwork is a network namespace in which nothing is, not even a loopback
// that is up. All commands without the network share it: the filter lets none of
// them have an address in it, so that they cannot meet.
func (c *Confiner) darkNetwork() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dark != 0 {
		return c.dark, nil
	}
	made := make(chan error, 1)
	OnThread(func() {
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			c.dark, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		made <- err
	})
	if err := <-made; err != nil {
		return 0, fmt.Errorf("new network namespace: %w", err)
	}
	return c.dark, nil
}
