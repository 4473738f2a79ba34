package confine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxScanned bounds the entries that are looked at for patterns, and
	// maxGlobDepth the directories that they are looked for in, one below the
	// other.
	maxScanned   = 200_000
	maxGlobDepth = 128
)

// expand lists the files that the patterns name now. Directories and links do
// not match.
func (b *planner) expand() (found []string, err error) {
	budget := maxScanned
	for _, pattern := range b.p.globs {
		g, err := parseGlob(pattern)
		if err != nil {
			return nil, err
		}
		if link := crossed(g.root, b.writable); link != "" {
			return nil, refuse("pattern %s crosses the writable symbolic link %s", pattern, link)
		}
		depth, bounded := maxGlobDepth, false
		if b.p.globDepth > 0 && b.p.globDepth <= maxGlobDepth {
			depth, bounded = b.p.globDepth, true
		}
		err = g.scan(depth, bounded, &budget, func(file string) { found = append(found, file) })
		if err != nil {
			return nil, refuse("pattern %s: %s", pattern, err)
		}
	}
	return found, nil
}

// glob is a pattern: a directory without wildcards, and what follows.
type glob struct {
	root  string
	parts []string // "**" stands for any number of directories
}

// wildcards make a name a pattern.
const wildcards = `*?[{\\`

// parseGlob takes an absolute pattern apart.
func parseGlob(pattern string) (glob, error) {
	g := glob{root: "/"}
	for part := range strings.SplitSeq(pattern, "/") {
		switch {
		case part == "":
		case len(g.parts) == 0 && !strings.ContainsAny(part, wildcards):
			g.root = filepath.Join(g.root, part)
		case strings.ContainsAny(part, `{\`):
			return g, refuse("the pattern %s has an alternative or an escape", pattern)
		default:
			part = strings.ReplaceAll(part, "[!", "[^")
			if _, err := filepath.Match(part, ""); err != nil {
				return g, refuse("the pattern %s is malformed", pattern)
			}
			g.parts = append(g.parts, part)
		}
	}
	return g, nil
}

// match tells whether the pattern's parts, some may stand for many, name a path
// below the root.
func (g glob) match(names []string) bool { return matchParts(g.parts, names) }

// matchParts goes back to the last ** only, as a match of one component does
// with its *, so that hostile patterns stay quadratic.
func matchParts(parts, names []string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(names) {
		switch {
		case p < len(parts) && parts[p] == "**":
			star, mark = p, n
			p++
		case p < len(parts) && matchName(parts[p], names[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(parts) && parts[p] == "**" {
		p++
	}
	return p == len(parts)
}

func matchName(pattern, name string) bool {
	ok, err := filepath.Match(pattern, name)
	return ok && err == nil
}

// scan looks for files, not through links, and calls found for each that
// matches. It fails if it cannot look at all of them.
func (g glob) scan(depth int, bounded bool, budget *int, found func(string)) error {
	at, err := filepath.EvalSymlinks(g.root)
	root := -1
	if err == nil {
		g.root = at
		root, err = look(at)
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	} else if err != nil {
		return err
	}
	deep := len(g.parts)
	if slices.Contains(g.parts, "**") {
		deep = depth + 1 // more than there may be
	}
	s := globScan{glob: g, depth: min(deep, depth), bounded: bounded || deep <= depth, budget: budget, found: found}
	return s.dir(root, ".", nil)
}

type globScan struct {
	glob
	depth   int  // of directories, one below the other
	bounded bool // deeper ones do not count
	budget  *int // entries
	found   func(string)
}

// dir looks at the entries of a directory, which is named from an open one. Paths
// would have a limit on their length.
func (s *globScan) dir(parent int, name string, names []string) error {
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if name == "." {
		_ = unix.Close(parent)
	}
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // it has gone, or is no directory any more
	case err != nil:
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	for {
		entries, err := f.ReadDir(256)
		for _, e := range entries {
			if *s.budget--; *s.budget < 0 {
				return errTooMany
			}
			at := append(names[:len(names):len(names)], e.Name())
			switch {
			case e.IsDir() && len(at) < s.depth:
				if err := s.dir(fd, e.Name(), at); err != nil {
					return err
				}
			case e.IsDir() && !s.bounded:
				return errTooDeep
			case !e.IsDir() && e.Type()&os.ModeSymlink == 0 && s.match(at):
				s.found(filepath.Join(s.root, filepath.Join(at...)))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

var (
	errTooMany = fmt.Errorf("more than %d files would have to be looked at", maxScanned)
	errTooDeep = fmt.Errorf("directories are more than %d deep", maxGlobDepth)
)
