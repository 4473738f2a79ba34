package process

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/confine"
)

// Identity is the user that commands and file operations run as, when that is
// not the agent's own. It is a property of OS threads: a goroutine takes it on
// by locking its thread and never gives it back, so that the thread ends with
// the goroutine. The nil Identity is the agent's own.
type Identity struct {
	UID, GID int
	Groups   []int
	// Guard keeps from commands, and from the threads that start them, what the
	// agent has over a usual container so that it can confine.
	Guard bool
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
		err := id.Assume()
		if err == nil && id.guarded() {
			err = confine.Guard()
		}
		if err != nil {
			fail(err)
			return
		}
		f()
	}()
}

// Assume gives the calling goroutine this identity for the rest of its life, as
// far as files go: only the file-system ids change. The thread's other ids stay
// the agent's, since whoever shares a real or saved id with a thread may signal
// it and set its limits. Commands take on the rest when they are executed.
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
	// Leaving uid 0 also drops the capabilities that override file permissions.
	if !setFS(unix.SYS_SETFSGID, id.GID) || !setFS(unix.SYS_SETFSUID, id.UID) {
		return fmt.Errorf("use files as %d:%d: %w", id.UID, id.GID, unix.EPERM)
	}
	return nil
}

// Resume undoes Assume: the calling thread has the agent's own rights again.
func (id *Identity) Resume() error {
	if id == nil {
		return nil
	}
	if !setFS(unix.SYS_SETFSUID, os.Getuid()) || !setFS(unix.SYS_SETFSGID, os.Getgid()) {
		return fmt.Errorf("use files as the agent: %w", unix.EPERM)
	}
	return nil
}

// Owner is whose new files are; -1 stands for the agent's own user.
func (id *Identity) Owner() (uid, gid int) {
	if id == nil {
		return -1, -1
	}
	return id.UID, id.GID
}

// setFS sets a file-system id of the calling thread. The call never fails; it
// returns the id that was there before, hence the second one.
func setFS(call uintptr, id int) bool {
	_, _, _ = unix.RawSyscall(call, uintptr(id), 0, 0)
	now, _, _ := unix.RawSyscall(call, uintptr(id), 0, 0)
	return int(now) == id
}

// guarded tells whether commands must not get what the agent has over a usual
// container.
func (id *Identity) guarded() bool { return id != nil && id.Guard }

// credential is what a command is executed with.
func (id *Identity) credential() *syscall.Credential {
	if id == nil {
		return nil
	}
	c := &syscall.Credential{Uid: uint32(id.UID), Gid: uint32(id.GID)}
	for _, g := range id.Groups {
		c.Groups = append(c.Groups, uint32(g))
	}
	return c
}
