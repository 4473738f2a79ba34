package veth

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// awaitUp waits until the kernel sends by a link that has just got its other end. It
// does so a little later, and loses what comes before.
func awaitUp(name string) error {
	return await(name+" is up", func() (bool, error) {
		l, err := netlink.LinkByName(name)
		return err == nil && l.Attrs().OperState == netlink.OperUp, err
	})
}

// awaitLocal waits until an address is one of the thread's namespace, which for IPv6
// takes the kernel a little, too.
func awaitLocal(a netip.Addr) error {
	return await(a.String()+" is local", func() (bool, error) {
		routes, err := netlink.RouteGet(a.AsSlice())
		return err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL, err
	})
}

func await(what string, done func() (bool, error)) error {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		ok, err := done()
		if ok {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("wait until %s: %w", what, errors.Join(err, context.DeadlineExceeded))
		}
	}
}
