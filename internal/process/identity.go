package process

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Identity is the user that commands and file operations run as, when that is
// not the agent's own. It is a property of OS threads: a goroutine takes it on
// by locking its thread and never gives it back, so that the thread ends with
// the goroutine. The nil Identity is the agent's own.
type Identity struct {
	UID, GID int
	Groups   []int
}

// Go runs f on a goroutine with this identity. If the identity cannot be taken
// on, f is not run and fail is called instead.
func (id *Identity) Go(f func(), fail func(error)) {
	go func() {
		if id != nil {
			runtime.LockOSThread()
			if unix.Gettid() == unix.Getpid() {
				// The first thread outlives its goroutine, and its user is taken
				// for the whole process's. Hold it until the work is on another.
				elsewhere := make(chan struct{})
				id.Go(func() { close(elsewhere); f() }, func(err error) { close(elsewhere); fail(err) })
				<-elsewhere
				runtime.UnlockOSThread()
				return
			}
		}
		if err := id.Assume(); err != nil {
			fail(err)
			return
		}
		f()
	}()
}

// Assume gives the calling goroutine this identity for the rest of its life.
func (id *Identity) Assume() error {
	if id == nil {
		return nil
	}
	runtime.LockOSThread()
	// The wrappers in package syscall change every thread; these change one.
	groups := make([]uint32, len(id.Groups)+1)
	for i, g := range id.Groups {
		groups[i] = uint32(g)
	}
	if err := rawSetgroups(groups[:len(id.Groups)]); err != nil {
		return fmt.Errorf("set groups: %w", err)
	}
	if _, _, no := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(id.GID), uintptr(id.GID), uintptr(id.GID)); no != 0 {
		return fmt.Errorf("set gid %d: %w", id.GID, no)
	}
	// Leaving uid 0 also drops all capabilities of the thread.
	if _, _, no := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(id.UID), uintptr(id.UID), uintptr(id.UID)); no != 0 {
		return fmt.Errorf("set uid %d: %w", id.UID, no)
	}
	return nil
}
