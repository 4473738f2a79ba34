// Package network is the only way out of an environment.
package network

import (
	_ "github.com/google/nftables"
	_ "github.com/mdlayher/netlink"
	_ "github.com/miekg/dns"
	_ "github.com/vishvananda/netlink"
	_ "golang.org/x/time/rate"
)
