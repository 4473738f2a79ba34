package netns

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// reuse lets a socket have an address that another one had.
func reuse(_, _ string, c syscall.RawConn) error { return setInt(c, unix.SO_REUSEADDR, 1) }

// marking marks a socket's packets, as root of a container can.
func marking(mark int) func(_, _ string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error { return setInt(c, unix.SO_MARK, mark) }
}

func setInt(c syscall.RawConn, opt, value int) (err error) {
	if cerr := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, opt, value)
	}); cerr != nil {
		return cerr
	}
	return err
}
