package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// talk sends a message of netlink and returns what the kernel says to it.
func talk(protocol int, typ, flags uint16, body []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return talkOn(fd, typ, flags, body)
}

func talkOn(fd int, typ, flags uint16, body []byte) error {
	b := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	b = append(append(b, 0, 0, 0, 0, 0, 0, 0, 0), body...)
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n >= 20 && binary.NativeEndian.Uint16(answer[4:]) == unix.NLMSG_ERROR {
		if errno := int32(binary.NativeEndian.Uint32(answer[16:])); errno != 0 {
			return unix.Errno(-errno)
		}
	}
	return nil
}

func attribute(typ uint16, data ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(data)))
	b = append(binary.NativeEndian.AppendUint16(b, typ), data...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

// addRoute makes metadata's address a local one.
func addRoute([]string) (string, error) {
	body := []byte{unix.AF_INET, 32, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}
	body = append(body, attribute(unix.RTA_DST, 169, 254, 169, 254)...)
	return "added", talk(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE, unix.NLM_F_CREATE, append(body, attribute(unix.RTA_OIF, 1, 0, 0, 0)...))
}

func addAddress([]string) (string, error) {
	body := []byte{unix.AF_INET, 32, 0, 0, 1, 0, 0, 0}
	return "added", talk(unix.NETLINK_ROUTE, unix.RTM_NEWADDR, unix.NLM_F_CREATE, append(body, attribute(unix.IFA_LOCAL, 169, 254, 169, 254)...))
}

// addLink makes a pair of interfaces.
func addLink([]string) (string, error) {
	info := attribute(unix.IFLA_LINKINFO, attribute(1, []byte("veth\x00")...)...)
	return "added", talk(unix.NETLINK_ROUTE, unix.RTM_NEWLINK, unix.NLM_F_CREATE, append(make([]byte, 16), info...))
}

// flushRules deletes all tables of nftables.
func flushRules([]string) (string, error) {
	c, err := nftables.New()
	if err != nil {
		return "", err
	}
	c.FlushRuleset()
	return "deleted", c.Flush()
}

// takeQueue has the kernel ask this process about connections.
func takeQueue([]string) (string, error) {
	body := append([]byte{0, 0, 0, 0}, attribute(1, 1, 0, 0, 0)...)
	return "bound", talk(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_QUEUE<<8|2, 0, body)
}

// flushConnections has the kernel forget all connections.
func flushConnections([]string) (string, error) {
	return "flushed", talk(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_CTNETLINK<<8|2, 0, []byte{unix.AF_INET, 0, 0, 0})
}

// newNamespaces has namespaces of its own, in which it may do everything.
func newNamespaces([]string) (string, error) {
	for _, flags := range []int{unix.CLONE_NEWUSER | unix.CLONE_NEWNET, unix.CLONE_NEWNET, unix.CLONE_NEWUSER} {
		errs := make(chan error)
		go func() {
			runtime.LockOSThread()
			errs <- unix.Unshare(flags)
		}()
		if err := <-errs; err != nil && flags == unix.CLONE_NEWUSER {
			return "", err
		} else if err == nil {
			return fmt.Sprintf("%#x", flags), nil
		}
	}
	return "", nil
}

// enterInit enters the network namespace of init, and of every other process.
func enterInit([]string) (string, error) {
	f, err := os.Open("/proc/1/ns/net")
	if err != nil {
		return "", err
	}
	defer f.Close()
	runtime.LockOSThread()
	return "entered", unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
}
