package confine

import (
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxScanned bounds the entries that are looked at for patterns, and
	// maxGlobDepth the directories that they are looked for in, one below the
	// other.
	maxScanned   = 200_000
	maxGlobDepth = 64
)

// expand lists the files that the patterns name now. Directories and links do
// not match.
func (p *Policy) expand() (found []string, err error) {
	budget := maxScanned
	for _, pattern := range p.globs {
		g, err := parseGlob(pattern)
		if err != nil {
			return nil, err
		}
		depth := maxGlobDepth
		if p.globDepth > 0 {
			depth = min(p.globDepth, depth)
		}
		g.scan(depth, &budget, func(file string) { found = append(found, file) })
		if budget <= 0 {
			return nil, refuse("for the pattern %s more than %d files would have to be looked at", pattern, maxScanned)
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
// matches. It gives up when budget has come to nothing.
func (g glob) scan(depth int, budget *int, found func(string)) {
	deep := len(g.parts)
	for _, part := range g.parts {
		if part == "**" {
			deep = depth
		}
	}
	g.scanDir(g.root, nil, min(deep, depth), budget, found)
}

func (g glob) scanDir(dir string, names []string, depth int, budget *int, found func(string)) {
	if depth == 0 {
		return
	}
	f, err := os.Open(dir)
	if err != nil {
		return // nor can the command
	}
	defer f.Close()
	for *budget > 0 {
		entries, err := f.ReadDir(256)
		for _, e := range entries {
			*budget--
			at := append(names[:len(names):len(names)], e.Name())
			switch {
			case e.IsDir():
				g.scanDir(filepath.Join(dir, e.Name()), at, depth-1, budget, found)
			case e.Type()&os.ModeSymlink == 0 && g.match(at):
				found(filepath.Join(dir, e.Name()))
			}
		}
		if err != nil {
			return
		}
	}
}
