package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/confine"
	"github.com/exec-server/exec-server/internal/proto"
)

// HelperSpec is a program of the server's own that runs beside it, with the
// rights of commands.
type HelperSpec struct {
	// Path is the program. "/proc/self/fd/N" executes a file that the server
	// holds open, whether or not it has a name.
	Path     string
	Argv     []string // with the name
	Env      []string // NAME=VALUE
	Dirs     []string // it starts in the first of these that can be entered, else in /
	Identity *Identity
	// Confine is what the helper may use beyond its identity's rights; nil if it
	// is not confined.
	Confine *confine.Policy
	// OOMScoreAdj is as for commands; 0 leaves it alone.
	OOMScoreAdj int
	// Files become the descriptors 3, 4 and so on. They stay the caller's.
	Files []int
}

// Helper is a program that StartHelper started. End has to be called, once.
type Helper struct {
	pid, pidfd  int
	confinement *confine.Confinement
}

// StartHelper starts a helper. It has /dev/null for standard input and output,
// and the server's own standard error.
func StartHelper(spec HelperSpec) (*Helper, error) {
	shedInheritedOnce()
	h, err := children.helper(&spec)
	if errors.Is(err, unix.EAGAIN) && children.reaping() {
		sweep() // as for commands: there may be room afterwards
		h, err = children.helper(&spec)
	}
	if err != nil {
		return nil, proto.Errorf(proto.CodeInternal, "start helper: %s", err)
	}
	if adj := spec.OOMScoreAdj; adj != 0 {
		// On a thread of the server's own: the caller's may have the rights of the
		// commands' user, and the file is root's.
		go func() {
			_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", h.pid), strconv.AppendInt(nil, int64(adj), 10), 0)
		}()
	}
	return h, nil
}

func (s *childSet) helper(spec *HelperSpec) (*Helper, error) {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(null) }()
	// By a descriptor, as a confined helper may not see its own path. It is not
	// opened for reading: the user of commands must not be able to read it.
	program, err := unix.Open(spec.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(program) }()
	files := []uintptr{uintptr(null), uintptr(null), 2}
	for _, fd := range spec.Files {
		files = append(files, uintptr(fd))
	}
	// The program is the last of them: another number could be overwritten by one
	// of the others before it is executed.
	files = append(files, uintptr(program))
	h := &Helper{pidfd: -1}
	start := func() (err error) {
		h.pid, err = s.fork(func() (int, error) {
			return syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", len(files)-1), spec.Argv, &syscall.ProcAttr{
				Dir: usableDir(spec.Dirs...), Env: spec.Env, Files: files,
				Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &h.pidfd, Credential: spec.Identity.credential()},
			})
		})
		return err
	}
	if spec.Confine == nil {
		err = start()
	} else {
		job := confine.Job{Policy: spec.Confine, Assume: spec.Identity.Assume, Guard: spec.Identity.guarded(), Terminal: -1}
		h.confinement, err = Confiner().Start(job, start)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// End kills the helper, unless it has ended, and waits for that.
func (h *Helper) End() {
	if h.pidfd >= 0 {
		_ = unix.PidfdSendSignal(h.pidfd, unix.SIGKILL, nil, 0)
		_ = unix.Close(h.pidfd)
		h.pidfd = -1
	} else {
		kill(h.pid, unix.SIGKILL) // it is a zombie at least: nobody else has its number
	}
	wait(h.pid)
	h.confinement.End()
}
