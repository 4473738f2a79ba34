package process

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// childPID reads si_pid, which package unix does not name: behind three ints
// and, on 64-bit systems, four bytes of padding.
func childPID(info *unix.Siginfo) int {
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), 16)))
}
