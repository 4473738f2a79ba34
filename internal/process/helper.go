package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
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
func StartHelper(spec HelperSpec) (h *Helper, err error) {
	shedInheritedOnce()
	done := make(chan struct{})
	// The caller's thread may have given the server's own file rights up.
	confine.OnThread(func() {
		defer close(done)
		defer raiseOOMScore(spec.OOMScoreAdj)()
		if spec.Identity.guarded() {
			if err = confine.Guard(); err != nil {
				return
			}
		}
		h, err = children.helper(&spec)
		if errors.Is(err, unix.EAGAIN) && children.reaping() {
			sweep() // as for commands: there may be room afterwards
			h, err = children.helper(&spec)
		}
	})
	<-done
	if err != nil {
		return nil, proto.Errorf(proto.CodeInternal, "start helper: %s", err)
	}
	return h, nil
}

const oomScoreAdj = "/proc/self/oom_score_adj"

// raised is held while the server itself has a helper's oom_score_adj.
var raised sync.Mutex

// raiseOOMScore gives the server an oom_score_adj for a helper to inherit, and
// returns what takes it back. A helper that cannot be looked into has no such
// file that the server could write to. For that moment the server is as likely
// to be killed as a command of its size, which is not very.
func raiseOOMScore(adj int) (lower func()) {
	if adj == 0 {
		return func() {}
	}
	raised.Lock()
	before, err := os.ReadFile(oomScoreAdj)
	if err == nil {
		err = os.WriteFile(oomScoreAdj, strconv.AppendInt(nil, int64(adj), 10), 0)
	}
	if err != nil {
		return raised.Unlock
	}
	return func() {
		_ = os.WriteFile(oomScoreAdj, before, 0)
		raised.Unlock()
	}
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
		job := confine.Job{Policy: spec.Confine, User: spec.Identity, Guard: spec.Identity.guarded(), Terminal: -1}
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
