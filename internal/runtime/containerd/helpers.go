package containerd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// helper is a process that containerd has started for a container of ours: a
// shim, or a shim's runc.
type helper struct{ id string }

// helpers returns the helpers of this server's state and namespace by process
// id, those of an earlier daemon included.
func (s *Server) helpers() (map[int]helper, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	found := map[int]helper{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if id, ok := s.helperOf(pid); ok {
			found[pid] = helper{id}
		}
	}
	return found, nil
}

// helperOf returns the container that the process is a helper of. Programs can
// choose their arguments, so what they run counts too: our own link, or runc.
func (s *Server) helperOf(pid int) (id string, ok bool) {
	proc := "/proc/" + strconv.Itoa(pid)
	exe, err := os.Readlink(proc + "/exe")
	if err != nil {
		return "", false // ended, or of the kernel
	}
	exe = strings.TrimSuffix(exe, " (deleted)")
	shim := filepath.Base(exe) == shimName && filepath.Dir(filepath.Dir(exe)) == filepath.Join(s.opts.Root, "shim")
	if !shim && !s.isRunc(exe) {
		return "", false
	}
	line, err := os.ReadFile(proc + "/cmdline")
	if err != nil {
		return "", false
	}
	args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	if shim {
		id = after(args, "-id")
		return id, id != "" && after(args, "-namespace") == s.opts.Namespace && after(args, "-address") == s.Address()
	}
	id = args[len(args)-1]
	return id, strings.HasPrefix(id, idPrefix) && after(args, "--root") == s.runcDir()
}

// isRunc tells whether it is the path of the OCI runtime, links resolved.
func (s *Server) isRunc(exe string) bool {
	runc, err := filepath.EvalSymlinks(s.runc)
	return err == nil && exe == runc
}

// after returns the argument behind name.
func after(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// killHelper kills the process if it is still a helper of the container: its
// number may have got to another since.
func (s *Server) killHelper(pid int, id string) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if now, ok := s.helperOf(pid); !ok || now != id {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	return nil
}

// forgetShims removes the links of other builds. No container may be running.
func (s *Server) forgetShims() error {
	dir := filepath.Join(s.opts.Root, "shim")
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); path != filepath.Dir(s.shim) {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}
