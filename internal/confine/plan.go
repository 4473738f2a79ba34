package confine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// plan looks the policy's paths up and returns what has to be mounted, parents
// before children. What is found out here is checked again when it is mounted.
//
// What is granted has to be within the user's reach: it is looked up with the
// user's rights. What is taken away is looked up with the agent's own, as a
// command could have put it out of reach for a while.
//
// What stands in for missing things is held for the caller to release, also
// after an error.
func (p *Policy) plan(marks *markers, user User) ([]step, []*marker, error) {
	if p.refused != nil {
		return nil, nil, p.refused
	}
	b := planner{p: p, marks: marks, real: map[string]step{}, granted: map[string]string{}}
	b.uid, b.gid = user.Owner()
	if err := user.Assume(); err != nil {
		return nil, nil, err
	}
	for at, level := range p.paths {
		if real, err := filepath.EvalSymlinks(at); err == nil && (level == read || level == write) {
			b.granted[at] = real
		}
	}
	if err := user.Resume(); err != nil {
		return nil, nil, err
	}
	if err := b.collect(); err != nil {
		return nil, b.held, err
	}
	steps, err := b.steps()
	return steps, b.held, err
}

type planner struct {
	p        *Policy
	marks    *markers
	uid, gid int // of what is made
	held     []*marker
	granted  map[string]string // real paths of what the user reaches
	writable []string          // real paths
	real     map[string]step   // by at
}

// collect finds what the entries name. Writable directories come first, since
// what is narrowed inside them must not be reached through a link.
func (b *planner) collect() error {
	b.write()
	narrowed := map[string]access{}
	for at, level := range b.p.paths {
		if level == read || level == deny {
			narrowed[at] = level
		}
	}
	denied, err := b.p.expand()
	if err != nil {
		return err
	}
	for _, at := range denied {
		narrowed[at] = deny
	}
	for at, level := range narrowed {
		if err := b.narrow(at, level); err != nil {
			return err
		}
	}
	for _, root := range b.writable {
		if err := b.protect(root); err != nil {
			return err
		}
	}
	return nil
}

// write collects what may be written. A link that a command could have made
// grants nothing more.
func (b *planner) write() {
	var linked []string
	for at, level := range b.p.paths {
		if real, ok := b.granted[at]; ok && level == write {
			if real != at {
				linked = append(linked, at)
				continue
			}
			b.add(at, real, write)
			b.writable = append(b.writable, real)
		}
	}
	slices.Sort(linked)
	for _, at := range linked {
		real := b.granted[at]
		if crossed(at, b.writable) == "" {
			b.add(at, real, write)
			b.writable = append(b.writable, real)
		}
	}
}

// inWritable tells whether a real path is in a writable directory.
func (b *planner) inWritable(real string) bool {
	return slices.ContainsFunc(b.writable, func(w string) bool { return within(w, real) })
}

// add records a path by its real name, and by the given one where that would
// otherwise lead nowhere.
func (b *planner) add(at, real string, how access) {
	st, err := os.Stat(real)
	if err != nil {
		return
	}
	s := step{at: real, from: real, how: how, dir: st.IsDir()}
	if b.real[real].how < how {
		b.real[real] = s
	}
	if at != real && !b.p.shown() && how != deny {
		s.at = at
		b.real[at] = s
	}
}

func (b *planner) narrow(at string, how access) error {
	if link := crossed(at, b.writable); link != "" {
		return refuse("%s path %s crosses the writable symbolic link %s", how, at, link)
	}
	real, err := filepath.EvalSymlinks(at)
	switch {
	case err == nil && !b.marks.stands(real):
		if _, reached := b.granted[at]; reached || how == deny || b.p.shown() || b.inWritable(real) {
			b.add(at, real, how)
		}
	case err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		// What stands in for a missing path is not there for the next command.
		if !b.p.skipped[at] {
			return b.forbid(at)
		}
	default:
		return refuse("%s path %s: %s", how, at, err)
	}
	return nil
}

func (a access) String() string {
	return [...]string{"hidden", "read-only", "writable", "denied"}[a]
}

// crossed returns the first component of a path that is a link which could be
// exchanged, because it lies in a writable directory.
func crossed(at string, writable []string) string {
	dir := "/"
	for name := range strings.SplitSeq(at[1:], "/") {
		if name == "" {
			continue
		}
		next := filepath.Join(dir, name)
		if _, err := os.Readlink(next); err == nil {
			if slices.ContainsFunc(writable, func(w string) bool { return within(w, dir) }) {
				return next
			}
			// What follows lies where the link leads.
			if next, err = filepath.EvalSymlinks(next); err != nil {
				return ""
			}
		}
		dir = next
	}
	return ""
}
