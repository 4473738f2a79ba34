package confine

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// cell is what a confined command moves into: a thread with a mount namespace
// that has a fresh /dev and /proc, and the init of PID and IPC
// namespaces. Nothing in it depends on a profile, so that it can be made before
// it is needed. It serves one command.
type cell struct {
	work   chan func() // runs on the thread, once; closing it ends the thread
	pid    int         // of init
	pidfd  int
	hold   int // closing it ends init
	blanks int // file system of stand-ins, mounted in the namespace
	// terminals is the /dev/pts that is covered by the new one, or -1.
	terminals int
}

// processes does what only the owner of this process's children can.
type processes struct {
	// fork runs a function that starts a child, and sees to it that the child is
	// not reaped by others.
	fork func(func() (int, error)) (int, error)
	// wait reaps a child.
	wait func(pid int)
}

// newCell makes a cell. Its thread waits for work.
func newCell(procs processes) (*cell, error) {
	c := &cell{work: make(chan func(), 1), pidfd: -1, hold: -1, blanks: -1, terminals: -1}
	built := make(chan error, 1)
	OnThread(func() {
		err := c.build(procs)
		built <- err
		if err != nil {
			return
		}
		if work, ok := <-c.work; ok {
			work()
		}
	})
	if err := <-built; err != nil {
		c.end(procs)
		return nil, err
	}
	return c, nil
}

// OnThread runs f on a thread of its own, which ends with f. It does not wait.
func OnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		// The first thread outlives its goroutine. Hold it until f has another.
		elsewhere := make(chan struct{})
		OnThread(func() { close(elsewhere); f() })
		<-elsewhere
		runtime.UnlockOSThread()
	}()
}

// ownMounts gives the calling thread mounts that nobody else sees. What others
// unmount is unmounted here too, so that waiting cells keep nothing busy.
func ownMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("new mount namespace: %w", err)
	}
	return propagation(unix.MS_SLAVE)
}

// propagation says what mounts made elsewhere mean here.
func propagation(kind uintptr) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|kind, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return nil
}

func (c *cell) build(procs processes) error {
	if len(initProgram) == 0 {
		return errors.New("not supported on this machine's architecture")
	}
	if err := ownMounts(); err != nil {
		return err
	}
	c.terminals, _ = look("/dev/pts") // a machine may have none, and then no terminals
	devices, err := newDevices()
	if err != nil {
		return err
	}
	if c.blanks, err = newBlanks(); err != nil {
		_ = unix.Close(devices)
		return err
	}
	// The stand-ins have to be mounted to be copied from. Below the new /dev they
	// are out of sight.
	if err := unix.MoveMount(c.blanks, "", unix.AT_FDCWD, "/dev", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		_ = unix.Close(devices)
		return fmt.Errorf("mount stand-ins: %w", err)
	}
	if err := attachAt(devices, "/dev"); err != nil {
		return err
	}
	masks, err := c.procMasks()
	if err != nil {
		return err
	}
	defer masks.close()
	if err := c.startInit(procs); err != nil {
		return err
	}
	if err := masks.apply(); err != nil {
		return err
	}
	return renounce()
}

// end takes the namespaces down, with all processes in them, and returns when
// that is done.
func (c *cell) end(procs processes) {
	close(c.work)
	if c.pidfd >= 0 {
		_ = unix.PidfdSendSignal(c.pidfd, unix.SIGKILL, nil, 0)
		procs.wait(c.pid)
	}
	for _, fd := range []int{c.pidfd, c.hold, c.blanks, c.terminals} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// console shows the command's terminal, whose own name is that of another
// /dev/pts, as /dev/console.
func (c *cell) console(number int) error {
	tree, err := clone(c.terminals, strconv.Itoa(number), unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return attachAt(tree, "/dev/console")
}
