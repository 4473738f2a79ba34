package egress

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unsent is how many bytes the kernel holds of what it cannot send yet, on a
// connection of the way out. What it holds nothing can overtake: with the megabytes
// that it would hold otherwise, an answer of one stream waits for seconds behind the
// output of another on a slow line. It does not bound what is on its way.
const unsent = 128 << 10

func limitUnsent(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		// Where it is not known, there is more delay and nothing else.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
	})
}
