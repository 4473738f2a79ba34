package containerd

import (
	"errors"

	"golang.org/x/sys/unix"
)

// hardFiles is how many files a process may open at most: 524288, or what the
// daemon itself may, if it is root without the right to go beyond that.
func hardFiles() uint64 { return atMost(unix.RLIMIT_NOFILE, 524288) }

// atMost is want, or what the daemon itself has of the resource if it is root
// without the right to go beyond that.
func atMost(resource int, want uint64) uint64 {
	var own unix.Rlimit
	caps := [2]unix.CapUserData{}
	err := errors.Join(
		unix.Getrlimit(resource, &own),
		unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &caps[0]))
	if err != nil || caps[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0 {
		return want
	}
	return min(want, own.Max)
}
