package netns

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/google/nftables"
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

// variant is what of the kernel a table uses.
type variant struct {
	native bool // nft_queue; else NFQUEUE of iptables, by nft_compat
	log    bool // nft_log with nfnetlink_log; without it nobody is told of what is denied
}

var variants = []variant{{true, true}, {false, true}, {true, false}, {false, false}}

// works is the first variant that this kernel may have.
var works atomic.Int32

// loadTable puts the table in the place of what was there, at once or not at all.
func loadTable(targets []target) (variant, error) {
	for i := works.Load(); ; i++ {
		err := replaceTable(targets, variants[i])
		if errors.Is(err, unix.ENOENT) && int(i+1) < len(variants) {
			continue // one of its expressions is not there
		}
		if err == nil {
			works.Store(i)
		}
		return variants[i], err
	}
}

func replaceTable(targets []target, v variant) error {
	c, err := transaction()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName}
	c.AddTable(t) // so that there is one to delete
	c.DelTable(t)
	c.AddTable(t)
	addDecide(c, t, v)
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
