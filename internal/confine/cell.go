package confine

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"syscall"

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

// startInit starts the init of the new namespaces and waits for its /proc.
func (c *cell) startInit(procs processes) error {
	program, err := initFile()
	if err != nil {
		return err
	}
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	defer unix.Close(in[0])
	c.hold = in[1]
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	defer unix.Close(out[0])
	c.pid, err = procs.fork(func() (int, error) {
		// The program is passed on, since under its own number something else could
		// be when it is executed.
		return syscall.ForkExec("/proc/self/fd/2", []string{"sandbox-init"}, &syscall.ProcAttr{
			Dir: "/", Files: []uintptr{uintptr(in[0]), uintptr(out[1]), uintptr(program)},
			Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &c.pidfd, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC},
		})
	})
	_ = unix.Close(out[1])
	if err != nil {
		return fmt.Errorf("start init: %w", err)
	}
	var errno [1]byte
	n, err := unix.Read(out[0], errno[:])
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(out[0], errno[:])
	}
	switch {
	case n != 1 || err != nil:
		return errors.New("init ended at once")
	case errno[0] != 0:
		return fmt.Errorf("mount /proc: %w", unix.Errno(errno[0]))
	}
	return nil
}

// initFile is the init program as an open file, made once.
var initFile = sync.OnceValues(func() (int, error) {
	const executableMemory = 0x10 // MFD_EXEC, unknown before Linux 6.3
	fd, err := unix.MemfdCreate("sandbox-init", unix.MFD_CLOEXEC|executableMemory)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate("sandbox-init", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return -1, fmt.Errorf("init program: %w", err)
	}
	if _, err := unix.Write(fd, initProgram); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("init program: %w", err)
	}
	// A file that is open for writing cannot be executed.
	ro, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	_ = unix.Close(fd)
	if err != nil {
		return -1, fmt.Errorf("init program: %w", err)
	}
	return ro, nil
})

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
