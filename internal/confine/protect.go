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
	if slices.Contains(b.writable, dir) && slices.Contains(protected, filepath.Base(at)) {
		return nil // and will be protected
	}
	if !b.inWritable(dir) || b.real[at].how != hidden {
		return nil
	}
	held, err := b.hold(at, false)
	if held {
		b.real[at] = step{at: at, how: deny, made: true}
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
		if link := crossed(at, b.writable); link != "" {
			return refuse("read-only path %s crosses the writable symbolic link %s", at, link)
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
	case mayMake && !readOnlyFS(filepath.Dir(at)):
		return errVanished // it was there when it was to be made
	}
	if err == nil && st.Mode().IsRegular() && filepath.Base(at) == ".git" {
		return b.protectGitDir(at)
	}
	return nil
}

func readOnlyFS(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}

// protectGitDir makes read-only what the .git of a work tree or a submodule
// points to.
func (b *planner) protectGitDir(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return refuse("read-only path %s: %s", file, err)
	}
	defer f.Close()
	text := make([]byte, 8192)
	n, _ := f.Read(text)
	target, ok := strings.CutPrefix(string(text[:n]), "gitdir:")
	if !ok {
		return nil
	}
	target, _, _ = strings.Cut(strings.TrimSpace(target), "\n")
	return b.narrow(absolute(filepath.Dir(file), target), read)
}

// errVanished says that something came or went while it was looked at; another
// look may do.
var errVanished = fmt.Errorf("the project changes while it is looked at: %w", unix.ENOENT)

// hold makes something stand in for what is not there. It reports false if it is
// there, or could not be made by the command either.
func (b *planner) hold(at string, dir bool) (bool, error) {
	m, err := b.marks.hold(at, dir, b.uid, b.gid)
	if m != nil {
		b.held = append(b.held, m)
	}
	if err != nil {
		return false, refuse("%s cannot be kept from being made: %s", at, err)
	}
	return m != nil, nil
}
