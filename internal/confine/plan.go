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

// step puts something over a path, or under it where nothing else is shown.
type step struct {
	at   string // where, without links
	from string // what is shown there; of the same name but for links
	how  access // read or write show from; deny hides it
	dir  bool   // what is there is a directory
	// made says that nothing is there, and that it must not be made: something
	// empty stands in for it.
	made bool
	// opened says that something below is shown although this is denied.
	opened bool
}

// A Refusal says why a profile cannot be enforced as things are.
type Refusal struct {
	reason string
	// Status is the exit status that tells it.
	Status int
}

func (r *Refusal) Error() string { return "cannot enforce the sandbox: " + r.reason }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...), 1} }

// maxSteps bounds the mounts of one command.
const maxSteps = 4096

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

func (a access) String() string {
	return [...]string{"hidden", "read-only", "writable", "denied"}[a]
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

// steps leaves out what changes nothing and marks what is opened below.
func (b *planner) steps() ([]step, error) {
	if len(b.real) > maxSteps {
		return nil, refuse("it would take %d mounts, the limit is %d", len(b.real), maxSteps)
	}
	all := make([]step, 0, len(b.real))
	for _, s := range b.real {
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y step) int { return comparePaths(x.at, y.at) })
	base := hidden
	if b.p.shown() {
		base = b.p.paths["/"]
	}
	kept := all[:0]
	var around []int // indexes in kept of the steps around the present one
	for _, s := range all {
		if s.at == "/" {
			continue
		}
		for len(around) > 0 && !within(kept[around[len(around)-1]].at, s.at) {
			around = around[:len(around)-1]
		}
		outer, alias := base, false
		if len(around) > 0 {
			o := kept[around[len(around)-1]]
			outer, alias = o.how, o.from != o.at
		}
		switch {
		case s.how == deny && outer == hidden:
			continue
		case s.how == outer && s.how != write && !s.made && !alias:
			continue // a writable one stays, so that it cannot be moved away
		case s.made && outer != write:
			continue // nothing can be made there anyway
		}
		if outer == deny {
			kept[around[len(around)-1]].opened = true
		}
		kept = append(kept, s)
		around = append(around, len(kept)-1)
	}
	return kept, nil
}

// comparePaths orders paths so that whatever is in a directory follows it.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}
