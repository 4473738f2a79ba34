package veth

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// life is how long flows go on without a sign of life of this process.
const life = 5 * time.Second

// variant is what of the kernel a table uses.
type variant struct {
	native bool // nft_queue; else NFQUEUE of iptables, by nft_compat
	count  bool // nft_connlimit; without it flows are not limited in number
}

var variants = []variant{{true, true}, {false, true}, {true, false}, {false, false}}

// transaction is a set of changes that is made at once or not at all.
type transaction struct {
	*nftables.Conn
	variant
	table *nftables.Table
	h     *Host
}

// load makes changes, with the first variant that works. mu is held.
func (h *Host) load(change func(transaction) error) error {
	for i := h.variant; ; i++ {
		err := h.try(variants[i], change)
		if errors.Is(err, unix.ENOENT) && i+1 < len(variants) {
			continue // one of its expressions is not there
		}
		if err == nil {
			h.variant = i
		}
		return err
	}
}

func (h *Host) try(v variant, change func(transaction) error) error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	t := transaction{c, v, &nftables.Table{Family: nftables.TableFamilyINet, Name: h.table}, h}
	if err := change(t); err != nil {
		return fmt.Errorf("change the table of nftables: %w", err)
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("change the table of nftables: %w", err)
	}
	return nil
}

// newTable puts the table, with all links, in the place of what was there.
func (t transaction) newTable() error {
	t.AddTable(t.table) // so that there is one to delete
	t.DelTable(t.table)
	t.AddTable(t.table)
	alive := t.alive()
	if err := t.AddSet(alive, []nftables.SetElement{sign}); err != nil {
		return err
	}
	for _, name := range []string{mapFrom, mapOut, mapIn} {
		if err := t.AddSet(t.links(name), nil); err != nil {
			return err
		}
	}
	t.addBase()
	for _, l := range t.h.links {
		if err := l.addChains(t); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) deleteTable() error {
	return h.try(variant{}, func(t transaction) error {
		t.AddTable(t.table)
		t.DelTable(t.table)
		return nil
	})
}

// exists tells whether the table is there. Where tables cannot be listed there is none.
func (h *Host) exists() bool {
	c, err := nftables.New()
	if err != nil {
		return false
	}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyINet)
	return err == nil && slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == h.table })
}

// sign is the sign of life.
var sign = nftables.SetElement{Key: native32(1), Timeout: life}

func (t transaction) alive() *nftables.Set {
	return &nftables.Set{Table: t.table, Name: "alive", KeyType: nftables.TypeMark, HasTimeout: true, Timeout: life}
}

// links is a map from the names of interfaces to chains.
func (t transaction) links(name string) *nftables.Set {
	return &nftables.Set{Table: t.table, Name: name, IsMap: true, KeyType: nftables.TypeIFName, DataType: nftables.TypeVerdict}
}

// beat gives the sign of life.
func (h *Host) beat() error {
	return h.try(variant{}, func(t transaction) error {
		alive := t.alive()
		t.FlushSet(alive)
		return t.SetAddElements(alive, []nftables.SetElement{sign})
	})
}

// counted asks the kernel how many bytes have passed, by the counters' names.
func (h *Host) counted() (map[string]uint64, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	objects, err := c.GetNamedObjects(&nftables.Table{Family: nftables.TableFamilyINet, Name: h.table})
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	all := map[string]uint64{}
	for _, o := range objects {
		if n, ok := o.(*nftables.NamedObj); ok {
			if counter, ok := n.Obj.(*expr.Counter); ok {
				all[n.Name] = counter.Bytes
			}
		}
	}
	return all, nil
}
