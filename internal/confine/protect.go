package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// forbid keeps a path that is not there from being made, by taking the place of
// its first component that is missing.
func (b *planner) forbid(at string) error {
	dir := at
	for {
		at, dir = dir, filepath.Dir(dir)
		if real, err := filepath.EvalSymlinks(dir); err == nil && !b.marks.stands(real) {
			at, dir = filepath.Join(real, filepath.Base(at)), real
			break
		} else if dir == "/" {
			return nil
		}
	}
	isProtected := slices.Contains(b.writable, dir) && slices.Contains(protected, filepath.Base(at))
	if isProtected && dir != "/" {
		return nil // and will be protected
	}
	if !b.inWritable(dir) || b.real[at].how != hidden {
		return nil
	}
	held, err := b.hold(at, isProtected)
	if held {
		b.real[at] = step{at: at, how: deny, made: true}
		if isProtected {
			b.real[at] = step{at: at, how: read, dir: true, made: true}
		}
	}
	return err
}

// protect makes the protected directories of a writable one read-only.
func (b *planner) protect(root string) error {
	if st, err := os.Stat(root); err != nil || !st.IsDir() {
		return nil
	}
	for _, name := range protected {
		at := filepath.Join(root, name)
		if b.p.paths[at] == write || b.real[at].how != hidden {
			continue // an entry says otherwise, or has been seen to
		}
		if _, err := os.Readlink(at); err == nil { // the way there has no link
			return refuse("read-only path %s crosses the writable symbolic link %s", at, at)
		}
		if err := b.protectOne(at, root != "/"); err != nil {
			return err
		}
	}
	return nil
}

func (b *planner) protectOne(at string, mayMake bool) error {
	if mayMake {
		held, err := b.hold(at, true)
		if held {
			b.real[at] = step{at: at, how: read, dir: true, made: true}
		}
		if held || err != nil {
			return err
		}
	}
	st, err := os.Lstat(at)
	switch {
	case err == nil:
		b.real[at] = step{at: at, from: at, how: read, dir: st.IsDir()}
	case !errors.Is(err, unix.ENOENT):
		return refuse("read-only path %s: %s", at, err)
	case mayMake:
		// It was there when it was to be made; or nobody can make it.
		if may, err := b.mayMake(filepath.Dir(at)); may || err != nil {
			return errors.Join(errVanished, err)
		}
	}
	if err == nil && st.Mode().IsRegular() && filepath.Base(at) == ".git" {
		return b.protectGitDir(at)
	}
	return nil
}

// protectGitDir makes read-only what the .git of a work tree or a submodule
// points to, if it is there. What the file says is a command's to choose.
func (b *planner) protectGitDir(file string) error {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return errVanished
	}
	f := os.NewFile(uintptr(fd), file)
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return errVanished
	}
	text := make([]byte, 8192)
	n, _ := f.ReadAt(text, 0)
	target, ok := strings.CutPrefix(string(text[:n]), "gitdir:")
	if !ok {
		return nil
	}
	target, _, _ = strings.Cut(strings.TrimSpace(target), "\n")
	if strings.IndexByte(target, 0) >= 0 || target == "" {
		return nil // for git neither
	}
	err = b.narrow(absolute(filepath.Dir(file), target), read)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// errVanished says that something came or went while it was looked at; another
// look may do.
var errVanished = fmt.Errorf("the project changes while it is looked at: %w", unix.ENOENT)

// hold makes something stand in for what is not there. It reports false if it is
// there, or could not be made by the user either.
func (b *planner) hold(at string, dir bool) (bool, error) {
	may, err := b.mayMake(filepath.Dir(at))
	if err != nil || !may {
		return false, err
	}
	uid, gid := b.user.Owner()
	m, err := b.marks.hold(at, dir, uid, gid)
	if m != nil {
		b.held = append(b.held, m)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		err = refuse("%s cannot be kept from being made: %s", at, err)
	}
	return m != nil, err
}

// mayMake tells whether the user can make something in a directory: now, or once
// its mode is changed, which is the owner's to do. Nothing is made, or given to
// the user, where that is not so: the path is the profile's or a file's word.
func (b *planner) mayMake(dir string) (may bool, err error) {
	if may, known := b.may[dir]; known {
		return may, nil
	}
	defer func() {
		if err == nil {
			b.may[dir] = may
		}
	}()
	fd, err := look(dir)
	if err != nil {
		return false, errVanished
	}
	defer unix.Close(fd)
	var fs unix.Statfs_t
	var st unix.Stat_t
	if err := errors.Join(unix.Fstatfs(fd, &fs), unix.Fstat(fd, &st)); err != nil {
		return false, refuse("%s: %s", dir, err)
	}
	if fs.Flags&unix.ST_RDONLY != 0 || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false, nil
	}
	if uid, _ := b.user.Owner(); uid < 0 || uid == int(st.Uid) {
		return true, nil
	}
	if err := b.user.Assume(); err != nil {
		return false, err
	}
	err = unix.Faccessat2(fd, "", unix.W_OK|unix.X_OK, unix.AT_EACCESS|unix.AT_EMPTY_PATH)
	return err == nil, b.user.Resume()
}
