package confine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// procMounts lists what is mounted at and below /proc, /proc itself first, and
// the other places where processes can be looked at.
func procMounts() (below, others []string, err error) {
	table, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, nil, fmt.Errorf("read mounts: %w", err)
	}
	below = []string{"/proc"}
	for line := range strings.Lines(string(table)) {
		front, back, ok := strings.Cut(line, " - ")
		fields := strings.Fields(front)
		if !ok || len(fields) < 5 {
			continue
		}
		at := unescape(fields[4])
		switch {
		case at == "/proc":
		case strings.HasPrefix(at, "/proc/"):
			below = append(below, at)
		case strings.HasPrefix(back, "proc "):
			others = append(others, at)
		}
	}
	return below, others, nil
}

// unescape reads a path of a table of mounts, in which blanks and the like are
// octal numbers.
func unescape(s string) string {
	for _, c := range []string{" ", "\t", "\n", `\`} {
		s = strings.ReplaceAll(s, fmt.Sprintf(`\%03o`, c[0]), c)
	}
	return s
}

// cover hides a directory or file for good, unless it cannot be reached anyway.
func cover(blanks int, at string) error {
	on, err := look(at)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil // below another mount
	} else if err != nil {
		return err
	}
	var st unix.Stat_t
	name := emptyDir
	if err := unix.Fstat(on, &st); err != nil {
		_ = unix.Close(on)
		return fmt.Errorf("%s: %w", at, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		name = deniedFile
	}
	blank, err := clone(blanks, name, readOnly)
	if err != nil {
		_ = unix.Close(on)
		return err
	}
	if err := attach(blank, on); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// kernelPaths are those in /proc that are about the machine, and that root could
// write to even without capabilities.
var kernelPaths = []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/scsi", "/proc/acpi"}

// masks are the mounts that hide parts of /proc from the container.
type masks struct {
	paths []string
	trees []int
}

// procMasks copies what is mounted below /proc, and hides what other /proc there
// may be.
func (c *cell) procMasks() (m masks, err error) {
	below, others, err := procMounts()
	if err != nil {
		return m, err
	}
	for _, at := range others {
		if err := cover(c.blanks, at); err != nil {
			return m, err
		}
	}
	for _, at := range below[1:] {
		tree, err := cloneAt(at, 0)
		if err != nil {
			return m, err
		}
		m.paths, m.trees = append(m.paths, at), append(m.trees, tree)
	}
	return m, nil
}

// apply puts the copies over the /proc that is there now, and makes of the rest
// read-only what is the machine's.
func (m *masks) apply() error {
	for i, at := range m.paths {
		tree := m.trees[i]
		m.trees[i] = -1
		if err := attachAt(tree, at); err != nil {
			return err
		}
	}
	for _, at := range kernelPaths {
		if slices.Contains(m.paths, at) {
			continue
		}
		tree, err := cloneAt(at, unix.MOUNT_ATTR_RDONLY)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err == nil {
			err = attachAt(tree, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *masks) close() {
	for _, fd := range m.trees {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
