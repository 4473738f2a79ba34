package process

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/confine"
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
	Identity  *Identity
	TTY       bool   // on a new terminal instead of pipes
	PipeStdin bool   // a pipe for standard input instead of /dev/null
	Shell     string // SHELL of terminals, where Env has none
	Home      string // where terminals start if Cwd is unusable
	// Confine is what the command may use beyond its identity's rights; nil if
	// it is not confined.
	Confine *confine.Policy
	// Listen is confine.Job's.
	Listen func() error
	// State, if not nil, is open in the command as descriptor StateFD.
	State *os.File
	// SignalCodes gives 128+N for a signal N on a terminal too, where the
	// protocol says 1.
	SignalCodes bool
}

// child is a command that runs, with our ends of its descriptors.
type child struct {
	pid, pidfd int
	stdin      int // -1 if there is none
	out        [2]int
	streams    [2]Stream

	confinement *confine.Confinement // nil without
	// stillborn is the exit code of a command that could not be executed where
	// that is not told before it has begun; pid is 0 then.
	stillborn int
}

func spawnError(err error) error {
	if e, ok := errors.AsType[*proto.Error](err); ok {
		return e
	}
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
	argv := spec.Argv
	if spec.HasArg0 {
		argv = append([]string{spec.Arg0}, argv[1:]...)
	}
	c := &child{pidfd: -1, stdin: -1, out: [2]int{-1, -1}}
	theirs, err := c.open(spec)
	if err == nil {
		start := func(cwd string) error {
			program, err := lookup(spec.Argv[0], cwd, spec.Env)
			if err != nil {
				return err
			}
			sys := &syscall.SysProcAttr{Setsid: true, Setctty: spec.TTY, PidFD: &c.pidfd, Credential: spec.Identity.credential()}
			c.pid, err = children.fork(func() (int, error) {
				return syscall.ForkExec(program, argv, &syscall.ProcAttr{
					Dir: cwd, Env: pairs(spec.Env), Files: withState(theirs, spec.State), Sys: sys,
				})
			})
			return err
		}
		if spec.Confine == nil {
			err = start(cwd)
		} else {
			err = c.startConfined(spec, cwd, int(theirs[2]), start)
		}
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
	if spec.Argv[0] == "" && spec.Confine == nil {
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
