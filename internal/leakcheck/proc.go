package leakcheck

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// process is what /proc tells of a process.
type process struct {
	pid, parent int
	zombie      bool
	text        string // its command line and executable
}

// all returns every process but the caller's own.
func all() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var found []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if p, ok := look(pid); ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// look returns one process, and false if it has ended.
func look(pid int) (process, bool) {
	proc := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(proc + "/stat")
	if err != nil {
		return process{}, false
	}
	// The name is in parentheses and may have any character in it.
	open, end := strings.IndexByte(string(stat), '('), strings.LastIndexByte(string(stat), ')')
	fields := strings.Fields(string(stat[end+1:]))
	if open < 0 || end < open || len(fields) < 2 {
		return process{}, false
	}
	p := process{pid: pid, zombie: fields[0] == "Z"}
	p.parent, _ = strconv.Atoi(fields[1])
	line, _ := os.ReadFile(proc + "/cmdline")
	exe, _ := os.Readlink(proc + "/exe")
	p.text = strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ") + " [" + exe + "]")
	if p.zombie {
		p.text = "zombie " + string(stat[open+1:end])
	}
	return p, true
}

// matching returns the processes in the scope.
func (s Scope) matching() ([]process, error) {
	processes, err := all()
	return slices.DeleteFunc(processes, func(p process) bool {
		if p.zombie && p.parent == os.Getpid() {
			return false
		}
		return !slices.ContainsFunc(s.Processes, func(part string) bool {
			return strings.Contains(p.text, part)
		})
	}), err
}

func (s Scope) processes() ([]string, error) {
	processes, err := s.matching()
	var found []string
	for _, p := range processes {
		found = append(found, fmt.Sprintf("%d: %s", p.pid, p.text))
	}
	return found, err
}

// namespaces returns the network namespaces of the processes in the scope, and
// those that are kept by a mount at or below a path or by a name.
func (s Scope) namespaces() ([]string, error) {
	var found []string
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	processes, err := s.matching()
	if err != nil {
		return nil, err
	}
	for _, p := range processes {
		ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.pid))
		if err == nil && ns != own {
			found = append(found, ns)
		}
	}
	mounts, err := mountTable()
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		if m.kind == "nsfs" && strings.HasPrefix(m.root, "net:") && s.below(m.at) {
			found = append(found, m.root+" at "+m.at)
		}
	}
	names, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range names {
		found = append(found, "/run/netns/"+e.Name())
	}
	return found, nil
}
