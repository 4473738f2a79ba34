package netns

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Supported says what of the kernel is missing for Open, by opening a namespace of
// its own in which a connection is refused. It needs root.
func Supported() error {
	ns, err := fresh()
	if err != nil {
		return err
	}
	defer ns.Close() //nolint:errcheck // nothing is written
	asked := make(chan struct{}, 1)
	n, err := Open(ns, Options{Decide: func(p *Packet) {
		select {
		case asked <- struct{}{}:
		default:
		}
		p.Refuse()
	}})
	if err != nil {
		return err
	}
	defer n.Close() //nolint:errcheck // nothing is written
	err = within(ns, func() error {
		c, err := net.DialTimeout("tcp4", "198.51.100.1:9", 2*time.Second)
		if err == nil {
			c.Close() //nolint:errcheck // it should not be there
		}
		return err
	})
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("a connection that is to be refused is not: %w", err)
	}
	select {
	case <-asked:
		return nil
	default:
		return errors.New("the kernel asks about no packet")
	}
}
