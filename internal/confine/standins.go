package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// newBlanks makes the file system of stand-ins.
func newBlanks() (int, error) {
	fd, err := tmpfs("0755")
	if err != nil {
		return -1, err
	}
	for name, mode := range map[string]uint32{emptyDir: 0o555, deniedDir: 0} {
		if err := unix.Mkdirat(fd, name, mode); err != nil {
			return -1, fmt.Errorf("make %s: %w", name, err)
		}
	}
	for name, mode := range map[string]uint32{emptyFile: 0o600, deniedFile: 0} {
		if err := makeFile(fd, name, mode); err != nil {
			return -1, fmt.Errorf("make %s: %w", name, err)
		}
	}
	return fd, nil
}

// source is what a step mounts; the caller owns it.
func (v *view) source(i int, s step) (int, error) {
	switch {
	case s.made && s.how == read:
		return clone(v.blanks, emptyDir, readOnly)
	case s.made:
		return clone(v.blanks, emptyFile, readOnly)
	case s.how == deny && s.opened:
		return v.openedDir(s)
	case s.how == deny && s.dir:
		return clone(v.blanks, deniedDir, readOnly)
	case s.how == deny:
		return clone(v.blanks, deniedFile, readOnly)
	}
	fd := v.clones[i]
	v.clones[i] = -1
	return fd, nil
}

// openedDir is a denied directory with places for what is shown inside it.
// It can be passed through, but not listed.
func (v *view) openedDir(s step) (int, error) {
	fd, err := tmpfs("0755")
	if err != nil {
		return -1, err
	}
	for _, inner := range v.steps {
		if inner.at != s.at && within(s.at, inner.at) && inner.how != deny {
			if err = makePoint(fd, inner.at[len(s.at):], inner.dir); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = unix.Fchmodat(fd, ".", 0o111, 0)
	}
	if err == nil {
		err = restrict(fd, unix.AT_EMPTY_PATH, readOnly, 0)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("open %s: %w", s.at, err)
	}
	return fd, nil
}
