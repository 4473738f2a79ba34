package netns

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// tableName is the table's; a namespace has one.
const tableName = "exec-server"

// The marks of packets for which a verdict was given. Those that a program has set
// are taken off before.
const (
	markAccepted = 1
	markRefused  = 2
)

// target is where packets of a family go: ports of the gateway's address.
type target struct {
	family
	tcp, dnsTCP, dnsUDP uint16
}

// transaction makes a connection to nftables in the thread's namespace, of which the
// transaction that it is for is the only one: an error that one left behind must not
// meet the next. Tests make it fail.
var transaction = func() (*nftables.Conn, error) { return nftables.New() }

// noQueue is set when the kernel turned out not to have nft_queue.
var noQueue atomic.Bool

// loadTable puts the table in the place of what was there, at once or not at all.
func loadTable(targets []target) error {
	if !noQueue.Load() {
		err := replaceTable(targets, nativeQueue())
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
		noQueue.Store(true)
	}
	return replaceTable(targets, xtQueue())
}

func replaceTable(targets []target, toQueue []expr.Any) error {
	c, err := transaction()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName}
	c.AddTable(t) // so that there is one to delete
	c.DelTable(t)
	c.AddTable(t)
	addDecide(c, t, toQueue)
	addSteer(c, t, targets)
	addRest(c, t)
	if err := c.Flush(); err != nil {
		return fmt.Errorf("load the table of nftables: %w", err)
	}
	return nil
}

func removeTable() error {
	c, err := transaction()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName}
	c.AddTable(t)
	c.DelTable(t)
	if err := c.Flush(); err != nil {
		return fmt.Errorf("remove the table of nftables: %w", err)
	}
	return nil
}
