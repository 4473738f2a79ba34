package snapshot

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// maxScript is the size in bytes up to which a state is kept.
const maxScript = 1 << 20

// shared is a file that several commands may be started with at once, and that is
// closed when it has ended and nobody starts one.
type shared struct {
	file *os.File

	mu    sync.Mutex // guards all below
	users int
	over  bool
}

func (s *shared) acquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.users++
	return true
}

func (s *shared) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.closeLocked()
}

func (s *shared) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.closeLocked()
}

func (s *shared) closeLocked() {
	if s.over && s.users == 0 && s.file != nil {
		_ = s.file.Close() // nothing is written to it
		s.file = nil
	}
}

// sealed is memory with that text which nobody can change: not even a command
// that has it open for writing. It is nil if the system has no such thing.
func sealed(text string) *os.File {
	fd, err := unix.MemfdCreate("shell", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("shell", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "shell")
	_, err = f.WriteString(text)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = f.Close() // it is of no use
		return nil
	}
	return f
}
