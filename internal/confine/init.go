package confine

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

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
