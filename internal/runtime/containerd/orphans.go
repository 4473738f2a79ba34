package containerd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the one that orphans of its own come back to,
// or ends that. Shims are such: they outlive the process that starts them.
// Without it they would stay zombies where the machine's init does not reap, as
// in a container whose init is the daemon itself.
func adoptOrphans(on bool) error {
	var arg uintptr
	if on {
		arg = 1
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, arg, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	return nil
}

// reapDelay is how long a child has to be a zombie to be nobody's: whoever has
// started a child waits for it at once.
const reapDelay = time.Second

// reapSoon reaps the shims that a removal ends, once they have ended.
func (r *Runtime) reapSoon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opts.Server == nil || r.reaping || r.ctx.Err() != nil {
		return
	}
	r.reaping = true
	r.tasks.Go(r.reap)
}

func (r *Runtime) reap() {
	var before map[int]bool
	for rounds := 0; rounds < 3 || len(before) > 0; rounds++ {
		select {
		case <-time.After(reapDelay):
		case <-r.ctx.Done():
			return
		}
		now := zombies()
		for pid := range now {
			if before[pid] {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
				delete(now, pid)
			}
		}
		before = now
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reaping = false
}

// reapAll waits for what ended sandboxes leave, which is about to end if it has
// not, for up to two seconds. Nothing starts meanwhile.
func (r *Runtime) reapAll() {
	r.mu.Lock()
	left := len(r.sandboxes)
	r.mu.Unlock()
	seen := map[int]int{}
	for range 200 {
		waiting := 0
		for pid, c := range children() {
			shim := strings.HasPrefix(shimName, c.name)
			if c.zombie {
				seen[pid]++
			}
			switch {
			case c.zombie && (shim || seen[pid] > 10):
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			case c.zombie || shim && left == 0:
				waiting++
			}
		}
		if waiting == 0 {
			return
		}
		time.Sleep(reapDelay / 100)
	}
}

// zombies returns the children of this process that have ended and were not
// waited for.
func zombies() map[int]bool {
	found := map[int]bool{}
	for pid, c := range children() {
		if c.zombie {
			found[pid] = true
		}
	}
	return found
}

// child is what the kernel tells about a child of this process. Its name is cut
// off after 15 bytes.
type child struct {
	name   string
	zombie bool
}

func children() map[int]child {
	found := map[int]child{}
	self := strconv.Itoa(os.Getpid())
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		// PID (NAME) STATE PARENT ...; NAME may hold anything.
		open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		fields := strings.Fields(string(stat[end+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 1 && fields[1] == self {
			found[pid] = child{string(stat[open+1 : end]), fields[0] == "Z"}
		}
	}
	return found
}
