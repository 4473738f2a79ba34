package veth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const sysctl = "/proc/sys/net/"

// setting is one of an interface.
type setting struct{ family, name, value string }

var (
	// A guest hears of no address of the host, and reaches none by a way around.
	hostSettings = []setting{
		{"ipv6", "addr_gen_mode", "1"}, // none of its own
		{"ipv6", "accept_ra", "0"},
		{"ipv4", "forwarding", "1"},
		{"ipv4", "arp_ignore", "8"},
		{"ipv4", "accept_redirects", "0"},
		{"ipv4", "send_redirects", "0"},
		{"ipv4", "accept_source_route", "0"},
		{"ipv4", "route_localnet", "0"},
		{"ipv4", "proxy_arp", "0"},
	}
	guestSettings = []setting{
		{"ipv6", "addr_gen_mode", "1"},
		{"ipv6", "accept_ra", "0"},
		{"ipv6", "router_solicitations", "0"},
	}
)

// apply sets an interface of the thread's namespace up. Without IPv6 there are none
// of its settings.
func apply(name string, settings []setting) error {
	for _, s := range settings {
		err := os.WriteFile(sysctl+s.family+"/conf/"+name+"/"+s.name, []byte(s.value), 0)
		if err != nil && !(s.family == "ipv6" && errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("change a setting: %w", err)
		}
	}
	return nil
}

// forward has the host forward packets, and tells whether it does so for IPv6. That
// stays so when the last link has gone: others may rely on it by then.
func (h *Host) forward() (v6 bool, err error) {
	if err := h.turnOn("ipv4/ip_forward"); err != nil {
		return false, err
	}
	off, err := read("ipv6/conf/default/disable_ipv6")
	if errors.Is(err, fs.ErrNotExist) || err == nil && off != "0" {
		return false, nil
	}
	const name = "ipv6/conf/all/forwarding"
	on, err := read(name)
	if err != nil || on != "0" {
		return err == nil, err
	}
	// A host that forwards no longer believes routers: it would lose its own way out.
	link, err := advertised()
	if err != nil {
		return false, err
	}
	if link != "" {
		h.opts.Log.Warn().Str("interface", link).Msg("veth: no IPv6: the host has its route from a router, and would lose it by net." +
			strings.ReplaceAll(name, "/", ".") + "; set accept_ra = 2 for the interface")
		return false, nil
	}
	return true, h.turnOn(name)
}

func (h *Host) turnOn(name string) error {
	on, err := read(name)
	if err != nil || on != "0" {
		return err
	}
	dotted := "net." + strings.ReplaceAll(name, "/", ".")
	if err := os.WriteFile(sysctl+name, []byte("1"), 0); err != nil {
		return fmt.Errorf("%s is 0 and can not be set to 1: %w", dotted, err)
	}
	h.opts.Log.Warn().Msgf("veth: set %s = 1: the host forwards packets from now on, between its other networks too", dotted)
	return nil
}

func read(name string) (string, error) {
	b, err := os.ReadFile(sysctl + name)
	if err != nil {
		return "", fmt.Errorf("read a setting: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// advertised is an interface that has a route from a router's advertisement, and
// would not have if the host forwards; "" if there is none.
func advertised() (string, error) {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Protocol: unix.RTPROT_RA}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return "", fmt.Errorf("list routes: %w", err)
	}
	for _, r := range routes {
		l, err := netlink.LinkByIndex(r.LinkIndex)
		if err != nil {
			continue // it has gone, and its routes with it
		}
		name := l.Attrs().Name
		if v, err := read("ipv6/conf/" + name + "/accept_ra"); err != nil || v != "2" {
			return name, nil //nolint:nilerr // in doubt it is not believed
		}
	}
	return "", nil
}
