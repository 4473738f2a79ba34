package process

import (
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// noFD is the child's side of a descriptor that was not opened.
const noFD = ^uintptr(0)

func fdOf(fd int) uintptr {
	if fd < 0 {
		return noFD
	}
	return uintptr(fd)
}

func closeAll(fds []uintptr) {
	for i, fd := range fds {
		if fd != noFD && (i == 0 || fd != fds[i-1]) {
			_ = unix.Close(int(fd))
		}
	}
}

// StateFD is the number of the descriptor that Spec.State is in a command. Every
// shell can name it: some know those of one digit only.
const StateFD = 9

// withState is a command's descriptors by number.
func withState(first [3]uintptr, state *os.File) []uintptr {
	if state == nil {
		return first[:]
	}
	all := append(make([]uintptr, 0, StateFD+1), first[:]...)
	for len(all) < StateFD {
		all = append(all, noFD)
	}
	return append(all, state.Fd())
}

// open makes the command's three descriptors and keeps our ends of them.
func (c *child) open(spec *Spec) (theirs [3]uintptr, err error) {
	theirs = [3]uintptr{noFD, noFD, noFD}
	if spec.TTY {
		return c.openTTY()
	}
	c.streams = [2]Stream{Stdout, Stderr}
	if spec.PipeStdin {
		theirs[0], c.stdin, err = pipe(false)
	} else {
		var null int
		null, err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		theirs[0] = fdOf(null)
	}
	for i := 0; i < 2 && err == nil; i++ {
		theirs[1+i], c.out[i], err = pipe(true)
	}
	return theirs, err
}

// pipe returns the end for the command and the one for us. Ours never blocks.
func pipe(weRead bool) (theirs uintptr, ours int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return noFD, -1, err
	}
	theirs, ours = uintptr(p[1]), p[0]
	if !weRead {
		theirs, ours = uintptr(p[0]), p[1]
		err = unix.SetNonblock(ours, true)
	}
	return theirs, ours, err
}

// openTTY makes a terminal of 24 rows and 80 columns.
func (c *child) openTTY() (theirs [3]uintptr, err error) {
	theirs = [3]uintptr{noFD, noFD, noFD}
	master, slave, err := pty.Open()
	if err != nil {
		return theirs, err
	}
	defer func() { _, _ = master.Close(), slave.Close() }()
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		return theirs, err
	}
	// Plain descriptors, so that the owner can wait for them by itself.
	dup := func(fd uintptr) int {
		n, e := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		if e != nil {
			err = e
			return -1
		}
		return n
	}
	c.streams[0] = PTY
	c.out[0], c.stdin = dup(master.Fd()), dup(master.Fd())
	theirs[0] = fdOf(dup(slave.Fd()))
	theirs[1], theirs[2] = theirs[0], theirs[0]
	if err == nil {
		err = unix.SetNonblock(c.stdin, true) // both of ours: they share the flag
	}
	return theirs, err
}
