package veth

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// sweep deletes the links and the table of the instance, and returns the indices of
// the links by their environments.
func (h *Host) sweep() (map[string]int, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	former := map[string]int{}
	for _, l := range links {
		digits, ok := strings.CutPrefix(l.Attrs().Name, h.prefix)
		if !ok || l.Type() != "veth" {
			continue
		}
		var i int
		if _, err := fmt.Sscanf(digits, "%04x", &i); err == nil && i >= 1 && i <= h.pool.size() {
			former[l.Attrs().Alias] = i
		}
		if err := deleteLink(l.Attrs().Name); err != nil {
			return nil, err
		}
	}
	if !h.exists() {
		return former, nil
	}
	return former, h.deleteTable()
}

func deleteLink(name string) error {
	l, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(l)
	}
	if err != nil && !missing(err) {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}

func missing(err error) bool {
	var none netlink.LinkNotFoundError
	return errors.As(err, &none) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT)
}
