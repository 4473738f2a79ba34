package leakcheck

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// mountPoint is a line of the table of mounts.
type mountPoint struct{ root, at, kind string }

// mountTable returns the mounts of the caller's mount namespace.
func mountTable() ([]mountPoint, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var mounts []mountPoint
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		place, source, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(place)
		kind, _, _ := strings.Cut(source, " ")
		if ok && len(fields) >= 5 {
			mounts = append(mounts, mountPoint{unescape.Replace(fields[3]), unescape.Replace(fields[4]), kind})
		}
	}
	return mounts, lines.Err()
}

func (s Scope) mounts() ([]string, error) {
	mounts, err := mountTable()
	var found []string
	for _, m := range mounts {
		if s.below(m.at) {
			found = append(found, m.at+" ("+m.kind+")")
		}
	}
	return found, err
}

func (s Scope) cgroups() ([]string, error) {
	if s.Cgroup == "" {
		return nil, nil
	}
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return gone(err)
		}
		if d.IsDir() && strings.Contains(path, "/"+s.Cgroup) {
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

func (s Scope) sockets() ([]string, error) {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(table)) {
		// The path is the eighth field and may have spaces in it.
		if fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " /", 2); len(fields) == 2 && s.below("/"+fields[1]) {
			found = append(found, "/"+fields[1])
		}
	}
	return found, nil
}

func (s Scope) files() ([]string, error) {
	var found []string
	for _, root := range s.Paths {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return gone(err)
			}
			if path == root {
				return nil
			}
			found = append(found, path)
			depth := strings.Count(path[len(root):], "/")
			if d.IsDir() && depth >= max(1, s.Depth) {
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// gone takes what went away while it was looked at for not there.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
