package doctor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// nftables asks the kernel for its rules' generation, in a network namespace
// that ends with its thread. The kernel loads the module for it.
func nftables() Check {
	const name = "nftables"
	if os.Geteuid() != 0 {
		return needsRoot(name)
	}
	if err := onOwnThread(askNFTables); err != nil {
		return Check{Name: name, Status: Warn, Detail: fmt.Sprintf("not available: %v; sandboxes cannot have a network policy", err),
			Fix: "modprobe nf_tables"}
	}
	return ok(name, "available")
}

func askNFTables() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}); err != nil {
		return err
	}
	const getGeneration = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN
	message := binary.NativeEndian.AppendUint32(nil, unix.NLMSG_HDRLEN+4) // with 4 bytes of nfgenmsg
	message = binary.NativeEndian.AppendUint16(message, getGeneration)
	message = binary.NativeEndian.AppendUint16(message, unix.NLM_F_REQUEST)
	message = append(message, make([]byte, 12)...) // sequence number, port, nfgenmsg
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	switch {
	case err != nil:
		return err
	case n < unix.NLMSG_HDRLEN+4:
		return errors.New("the kernel's answer is cut short")
	case binary.NativeEndian.Uint16(answer[4:]) == unix.NLMSG_ERROR:
		return unix.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])))
	}
	return nil
}
