package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// kill signals a process, or a group by its negative number. 0, which a command
// that was never executed has, would be this process's own group.
func kill(pid int, sig unix.Signal) {
	if pid != 0 {
		_ = unix.Kill(pid, sig)
	}
}

// children are the commands that some Process waits for. The reaper leaves
// them alone.
var children childSet

type childSet struct {
	// births is held for reading from before a fork until the child is in pids,
	// and for writing while the reaper judges a child.
	births sync.RWMutex

	mu     sync.Mutex // guards pids and notify
	pids   map[int]struct{}
	notify chan struct{} // wakes the reaper; nil if there is none
}

// spawn starts a command. If there is no room for another process, that may be
// because of orphans that have ended: they are reaped now, and it is tried again.
func (s *childSet) spawn(spec *Spec) (*child, error) {
	c, err := spawn(spec)
	if e, ok := errors.AsType[*proto.Error](err); ok && e.Message == proto.ErrnoText(unix.EAGAIN) && s.reaping() {
		sweep()
		return spawn(spec)
	}
	return c, err
}

// reaping tells whether orphans are ours to reap.
func (s *childSet) reaping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notify != nil
}

// fork runs a function that starts a child, and records the child before the
// reaper can see it.
func (s *childSet) fork(start func() (int, error)) (int, error) {
	s.births.RLock()
	defer s.births.RUnlock()
	pid, err := start()
	if err == nil {
		s.add(pid)
	}
	return pid, err
}

func (s *childSet) add(pid int) {
	s.mu.Lock()
	if s.pids == nil {
		s.pids = make(map[int]struct{})
	}
	s.pids[pid] = struct{}{}
	notify := s.notify
	s.mu.Unlock()
	if notify != nil {
		select {
		case notify <- struct{}{}:
		default:
		}
	}
}

func (s *childSet) has(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.pids[pid]
	return ok
}

// wait reaps one of our commands.
func wait(pid int) (status unix.WaitStatus, ok bool) {
	_, err := unix.Wait4(pid, &status, 0, nil)
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Wait4(pid, &status, 0, nil)
	}
	children.mu.Lock()
	delete(children.pids, pid)
	children.mu.Unlock()
	return status, err == nil
}

// reapEvery is how long an orphan may stay a zombie.
const reapEvery = 100 * time.Millisecond

// ReapOrphans makes the calling process a proper init: it reaps the children
// that commands leave behind, and nothing that a Process waits for. It sleeps
// while there are no children at all. It does not return.
func ReapOrphans() {
	notify := make(chan struct{}, 1)
	children.mu.Lock()
	children.notify = notify
	children.mu.Unlock()
	for {
		if !sweep() {
			<-notify
		}
		time.Sleep(reapEvery)
	}
}

// sweep reaps all orphans that have ended, and tells whether there may be more
// children later.
func sweep() bool {
	for {
		pid, more := sweepOne()
		if pid == 0 {
			return more
		}
		if children.has(pid) { // its owner is about to; it may hide others
			for _, zombie := range zombies() {
				children.reapUnlessOurs(zombie)
			}
			return true
		}
	}
}

// sweepOne looks at some child that has ended, and reaps it if it is an orphan.
func sweepOne() (pid int, more bool) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if errors.Is(err, unix.EINTR) {
		return 0, true
	}
	pid = childPID(&info)
	if err != nil || pid == 0 {
		return 0, !errors.Is(err, unix.ECHILD)
	}
	children.reapUnlessOurs(pid)
	return pid, true
}

func (s *childSet) reapUnlessOurs(pid int) {
	s.births.Lock()
	defer s.births.Unlock()
	if !s.has(pid) {
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
}

// zombies lists our children that have ended, from /proc.
func zombies() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	self := os.Getpid()
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// PID (COMM) STATE PPID ...; COMM may hold anything.
		_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(self) {
			pids = append(pids, pid)
		}
	}
	return pids
}
