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
func (p *Policy) plan(marks *markers, user User) (plan, []*marker, error) {
	if p.refused != nil {
		return plan{}, nil, p.refused
	}
	b := planner{p: p, marks: marks, user: user, real: map[string]step{}, granted: map[string]string{}, links: map[string]string{}, may: map[string]bool{}}
	if err := user.Assume(); err != nil {
		return plan{}, nil, err
	}
	for at, level := range p.paths {
		if real, err := filepath.EvalSymlinks(at); err == nil && (level == read || level == write) {
			b.granted[at] = real
		}
	}
	if err := user.Resume(); err != nil {
		return plan{}, nil, err
	}
	if err := b.collect(); err != nil {
		return plan{}, b.held, err
	}
	steps, err := b.steps()
	return plan{steps, b.links}, b.held, err
}

// plan is what has to be mounted, and, where nothing else is shown, which links
// lead there.
type plan struct {
	steps []step
	links map[string]string // by name
}

type planner struct {
	p        *Policy
	marks    *markers
	user     User
	held     []*marker
	granted  map[string]string // real paths of what the user reaches
	writable []string          // real paths
	real     map[string]step   // by at
	links    map[string]string // to real paths, by the names that were granted
	may      map[string]bool   // whether the user can make something in a directory
}

// collect finds what the entries name. Writable directories come first, since
// what is narrowed inside them must not be reached through a link.
func (b *planner) collect() error {
	if err := b.write(); err != nil {
		return err
	}
	narrowed := map[string]access{}
	for at, level := range b.p.paths {
		if level == read || level == deny {
			narrowed[at] = level
		}
	}
	denied, err := b.expand()
	if err != nil {
		return err
	}
	for _, at := range denied {
		if err := b.narrow(at, deny); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	for at, level := range narrowed {
		err := b.narrow(at, level)
		if errors.Is(err, unix.ENOENT) {
			err = nil
			if !b.p.skipped[at] {
				err = b.forbid(at)
			}
		}
		if err != nil {
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

// write collects what may be written. A link that a command could have made, in
// whatever may be written, grants nothing more.
func (b *planner) write() error {
	for at, level := range b.p.paths {
		if real, ok := b.granted[at]; ok && level == write {
			b.writable = append(b.writable, real)
		}
	}
	kept := b.writable[:0:0]
	for at, level := range b.p.paths {
		if real, ok := b.granted[at]; ok && level == write && crossed(at, b.writable) == "" {
			kept = append(kept, real)
			if err := b.add(at, real, write); err != nil {
				return err
			}
		}
	}
	b.writable = kept
	return nil
}

// inWritable tells whether a real path is in a writable directory.
func (b *planner) inWritable(real string) bool {
	return slices.ContainsFunc(b.writable, func(w string) bool { return within(w, real) })
}

// add records a path by its real name. Where nothing else is shown, a link leads
// there from the name that was given.
func (b *planner) add(at, real string, how access) error {
	st, err := os.Stat(real)
	if err != nil {
		return errVanished
	}
	if b.real[real].how < how {
		b.real[real] = step{at: real, from: real, how: how, dir: st.IsDir()}
	}
	if at != real && how != deny {
		b.links[at] = real
	}
	return nil
}

// narrow takes something away. It fails with errVanished if that is not there,
// and need not be kept from being made.
func (b *planner) narrow(at string, how access) error {
	if link := crossed(at, b.writable); link != "" {
		return refuse("%s path %s crosses the writable symbolic link %s", how, at, link)
	}
	real, err := filepath.EvalSymlinks(at)
	switch {
	case err == nil && b.marks.stands(real), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return errVanished // what stands in for a path is not there for the next command
	case err != nil:
		return refuse("%s path %s: %s", how, at, err)
	}
	if _, reached := b.granted[at]; reached || how == deny || b.p.shown() || b.inWritable(real) {
		return b.add(at, real, how)
	}
	return nil
}

func (a access) String() string {
	return [...]string{"hidden", "read-only", "writable", "denied"}[a]
}

// maxLinks is how many links a path may lead through, as for the kernel.
const maxLinks = 40

// crossed returns a link that a path leads through, at whatever stage, and that
// could be exchanged, because it lies in a writable directory.
func crossed(at string, writable []string) string {
	dir, rest := "/", strings.Split(at, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			dir = filepath.Dir(dir)
			continue
		}
		next := filepath.Join(dir, name)
		target, err := os.Readlink(next)
		if err != nil {
			dir = next
			continue
		}
		links++
		if slices.ContainsFunc(writable, func(w string) bool { return within(w, dir) }) || links > maxLinks {
			return next
		}
		if filepath.IsAbs(target) {
			dir = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return ""
}
