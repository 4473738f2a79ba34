package process

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// Kinds of spawn failures, as they go over the wire.
const (
	kindNotFound = "spawnNotFound"
	kindDenied   = "spawnPermissionDenied"
	kindFailed   = "spawnFailed"
)

// Spec is a command to start.
type Spec struct {
	ID        string
	Argv      []string // at least one
	Arg0      string   // what the program sees as its name, if HasArg0
	HasArg0   bool
	Cwd       string // native, absolute
	Env       map[string]string
	TTY       bool   // on a new terminal instead of pipes
	PipeStdin bool   // a pipe for standard input instead of /dev/null
	Shell     string // SHELL of terminals, where Env has none
	Home      string // where terminals start if Cwd is unusable
}

// child is a command that runs, with our ends of its descriptors.
type child struct {
	pid, pidfd int
	stdin      int // -1 if there is none
	out        [2]int
	streams    [2]Stream
}

func spawnError(err error) error {
	no, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return &proto.Error{Code: proto.CodeInternal, Message: err.Error(), Kind: kindFailed}
	}
	e := &proto.Error{Code: proto.CodeInternal, Message: proto.ErrnoText(no), Kind: kindFailed}
	switch no {
	case syscall.ENOENT:
		e.Kind = kindNotFound
	case syscall.EACCES, syscall.EPERM:
		e.Kind = kindDenied
	case syscall.E2BIG:
		e.Message += fmt.Sprintf(": one argument or variable may have %d bytes, all together what ARG_MAX says", maxArgStrlen)
	}
	return e
}

// maxArgStrlen is the kernel's MAX_ARG_STRLEN, less the final zero.
const maxArgStrlen = 32*4096 - 1

// spawn starts the command as a session leader. Its errors are *proto.Error.
func spawn(spec *Spec) (*child, error) {
	shedInheritedOnce()
	if err := check(spec); err != nil {
		return nil, &proto.Error{Code: proto.CodeInternal, Message: err.Error(), Kind: kindFailed}
	}
	cwd := spec.Cwd
	if spec.TTY {
		cwd = usableDir(cwd, spec.Home)
		if _, ok := spec.Env["SHELL"]; !ok && spec.Shell != "" {
			spec.Env["SHELL"] = spec.Shell
		}
	}
	path, hasPath := spec.Env["PATH"]
	program, err := lookup(spec.Argv[0], cwd, path, hasPath)
	if err != nil {
		return nil, spawnError(err)
	}
	argv := spec.Argv
	if spec.HasArg0 {
		argv = append([]string{spec.Arg0}, argv[1:]...)
	}
	c := &child{pidfd: -1, stdin: -1, out: [2]int{-1, -1}}
	theirs, err := c.open(spec)
	if err == nil {
		sys := &syscall.SysProcAttr{Setsid: true, Setctty: spec.TTY, PidFD: &c.pidfd}
		c.pid, err = syscall.ForkExec(program, argv, &syscall.ProcAttr{
			Dir: cwd, Env: pairs(spec.Env), Files: theirs[:], Sys: sys,
		})
	}
	closeAll(theirs[:])
	if err != nil {
		closeAll([]uintptr{fdOf(c.stdin), fdOf(c.out[0]), fdOf(c.out[1])})
		return nil, spawnError(err)
	}
	return c, nil
}

func check(spec *Spec) error {
	kind := "pipe"
	if spec.TTY {
		kind = "PTY"
	}
	if spec.Argv[0] == "" {
		return fmt.Errorf("missing program for %s spawn", kind)
	}
	for _, arg := range spec.Argv {
		if strings.IndexByte(arg, 0) >= 0 {
			return errors.New("nul byte found in provided data")
		}
	}
	if strings.IndexByte(spec.Arg0, 0) >= 0 {
		return errors.New("nul byte found in provided data")
	}
	for name, value := range spec.Env {
		if strings.IndexByte(name, 0) >= 0 || strings.IndexByte(value, 0) >= 0 {
			return errors.New("data provided contains a nul byte")
		}
	}
	return nil
}

// usableDir is the first of the directories that can be entered.
func usableDir(dirs ...string) string {
	for _, dir := range dirs {
		var st unix.Stat_t
		if dir != "" && unix.Stat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR &&
			unix.Faccessat(unix.AT_FDCWD, dir, unix.X_OK, unix.AT_EACCESS) == nil {
			return dir
		}
	}
	return "/"
}

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
