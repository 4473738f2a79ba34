package process

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/confine"
	"github.com/exec-server/exec-server/internal/proto"
)

// Confiner confines this process's commands and file work.
var Confiner = sync.OnceValue(func() *confine.Confiner {
	return confine.New(children.fork, func(pid int) { wait(pid) })
})

// notExecuted is the exit code of commands that could not be executed under their
// profile. As the profile says what is there to be executed, that is the
// command's failure and not that of its start.
const notExecuted = 101

// startConfined starts the command under its profile; stderr is the command's.
func (c *child) startConfined(spec *Spec, cwd string, stderr int, start func(cwd string) error) error {
	if !spec.TTY {
		// A working directory that is not there at all is told before.
		if err := checkDir(cwd); err != nil {
			return err
		}
	}
	terminal := -1
	if spec.TTY {
		n, err := unix.IoctlGetInt(c.out[0], unix.TIOCGPTN)
		if err != nil {
			return err
		}
		terminal = n
	}
	job := confine.Job{Policy: spec.Confine, User: spec.Identity, Guard: spec.Identity.guarded(), Listen: spec.Listen, Terminal: terminal}
	var failed error // of the start itself
	confinement, err := Confiner().Start(job, func() error {
		failed = start(usableDir(cwd, "/"))
		return failed
	})
	c.confinement = confinement
	switch refusal := (*confine.Refusal)(nil); {
	case err == nil:
		return nil
	case errors.As(err, &refusal):
		c.stillborn = refusal.Status
		sayTo(stderr, fmt.Sprintf("exec-server: %s\n", refusal))
		return nil
	case failed == nil:
		return &proto.Error{Code: proto.CodeInvalidParams, Kind: "sandboxUnavailable", Message: fmt.Sprintf("failed to prepare process sandbox: %s", err)}
	case errors.Is(failed, syscall.EAGAIN) || errors.Is(failed, syscall.ENOMEM):
		return failed
	}
	c.stillborn = notExecuted
	sayTo(stderr, fmt.Sprintf("exec-server: cannot execute %s in its sandbox: %s\n", spec.Argv[0], textOf(failed)))
	return nil
}

func textOf(err error) string {
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return proto.ErrnoText(no)
	}
	return err.Error()
}

// sayTo writes to a new pipe or terminal, which has room for it.
func sayTo(fd int, text string) { _, _ = unix.Write(fd, []byte(text)) }

func checkDir(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return syscall.ENOTDIR
	}
	return nil
}
