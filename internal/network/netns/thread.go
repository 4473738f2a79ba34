package netns

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// duplicate returns a descriptor of the namespace that is ours to close.
func duplicate(ns *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(ns.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	runtime.KeepAlive(ns)
	if err != nil {
		return nil, fmt.Errorf("duplicate the network namespace: %w", err)
	}
	return os.NewFile(uintptr(fd), ns.Name()), nil
}

// within runs f on a thread that is in the network namespace. The sockets that f
// makes stay there, whoever uses them later. f must not start goroutines that make
// some.
func within(ns *os.File, f func() error) error {
	return apart(func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the network namespace: %w", err)
		}
		return f()
	})
}

// fresh makes a network namespace, which lasts as long as the file.
func fresh() (ns *os.File, err error) {
	err = apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		ns, err = open()
		return err
	})
	return ns, err
}

// apart runs f on a thread whose network namespace f may change. The goroutine is one
// of its own so that the thread ends with it, and takes nobody with it, if it can not
// go back.
func apart(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := open()
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		defer home.Close() //nolint:errcheck // nothing is written
		err = f()
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// open opens the network namespace that the thread is in.
func open() (*os.File, error) {
	ns, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("open the thread's network namespace: %w", err)
	}
	return ns, nil
}
