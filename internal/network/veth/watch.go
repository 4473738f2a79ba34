package veth

import (
	"errors"
	"slices"

	netfilter "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// watch tells when somebody has deleted a table, as far as the kernel tells.
func watch() (deleted <-chan struct{}, end func()) {
	c, err := netfilter.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, func() {}
	}
	if err := c.JoinGroup(unix.NFNLGRP_NFTABLES); err != nil {
		return nil, func() { _ = c.Close() }
	}
	told := make(chan struct{}, 1)
	go func() {
		for {
			messages, err := c.Receive()
			var missed *netfilter.OpError
			switch {
			case errors.As(err, &missed) && errors.Is(missed.Err, unix.ENOBUFS):
			case err != nil:
				return // it is closed
			case !slices.ContainsFunc(messages, deletesTable):
				continue
			}
			select {
			case told <- struct{}{}:
			default: // it is going to be looked at
			}
		}
	}()
	return told, func() { _ = c.Close() }
}

func deletesTable(m netfilter.Message) bool {
	return m.Header.Type == unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_DELTABLE
}
