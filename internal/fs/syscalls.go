package fs

import "golang.org/x/sys/unix"

// retry repeats a system call that a signal has interrupted, which remote and
// user-space file systems let happen even where handlers ask for a restart.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func openat(dir int, name string, flags int, perm uint32) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, perm)
		return err
	})
	return fd, err
}

func mkdirat(dir int, name string) error {
	return retry(func() error { return unix.Mkdirat(dir, name, 0o777) })
}

func unlinkat(dir int, name string, flags int) error {
	return retry(func() error { return unix.Unlinkat(dir, name, flags) })
}
