package process

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawSetgroups sets the supplementary groups of the calling thread alone.
func rawSetgroups(groups []uint32) error {
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0])
	}
	_, _, no := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0)
	runtime.KeepAlive(groups)
	if no != 0 {
		return no
	}
	return nil
}
