package confine

import (
	"path"
	"strings"

	"github.com/exec-server/exec-server/internal/proto"
)

// access is what a profile says about a path. Of two entries for the same path
// the greater wins.
type access int

const (
	hidden access = iota // not named: not there
	read
	write
	deny
)

// network is what a command has of it.
type network int

const (
	allOfIt network = iota
	noNetwork
	// proxied is a loopback of the command's own, on which its proxy listens, and
	// proxiedUnix that and unix sockets.
	proxied
	proxiedUnix
)

// Policy is a profile with its special paths resolved, for one command or one
// file operation.
type Policy struct {
	// restricted is false if all files may be read and written.
	restricted bool
	network    network
	// paths holds the entries, by clean absolute path.
	paths map[string]access
	// skipped are the paths whose entries mean nothing while they are not there.
	skipped map[string]bool
	// globs are absolute patterns of files that are denied.
	globs []string
	// globDepth bounds how deep globs are looked for; 0 is the default.
	globDepth int
	// refused is why the profile cannot be enforced, whatever there is; or nil.
	refused error
}

// Context is what special paths stand for.
type Context struct {
	Cwd    string // of the command, in place of a missing one of the policy's
	TmpDir string // TMPDIR of the command; "" if it has none
}

// protected are directories whose contents direct the tools that work on a
// project. They are read-only right below every writable directory.
var protected = []string{".git", ".agents", ".codex", ".aws"}

// minimal is what programs need to run.
var minimal = []string{"/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr"}

// A ForeignPath is an error about a part of a profile that is of another system.
type ForeignPath struct {
	Part string // "permission path", "policy cwd" or "workspace root"
	Err  error  // names the path
}

func (e *ForeignPath) Error() string { return "invalid sandbox " + e.Part + ": " + e.Err.Error() }

func (e *ForeignPath) Unwrap() error { return e.Err }

// Resolve makes a profile concrete. Its errors are *ForeignPath.
func Resolve(s *proto.Sandbox, ctx Context) (*Policy, error) {
	p := &Policy{paths: map[string]access{}, skipped: map[string]bool{}}
	if !s.Network {
		p.network = noNetwork
	}
	if s.HasCwd {
		native, err := s.Cwd.Native()
		if err != nil {
			return nil, &ForeignPath{"policy cwd", err}
		}
		ctx.Cwd = native
	}
	roots := make([]string, len(s.Roots))
	for i, uri := range s.Roots {
		native, err := uri.Native()
		if err != nil {
			return nil, &ForeignPath{"workspace root", err}
		}
		roots[i] = native
	}
	if !s.Restricted {
		return p, nil
	}
	p.globDepth = int(min(s.GlobDepth, 1<<20))
	for _, e := range s.Entries {
		if err := p.add(e, ctx, roots); err != nil {
			return nil, err
		}
	}
	p.restricted = p.narrows()
	if s.LegacyLandlock && p.restricted {
		p.refused = &Refusal{"files can be restricted by mounts only, not in the legacy way", 101}
	}
	return p, nil
}

func (p *Policy) add(e proto.SandboxEntry, ctx Context, roots []string) error {
	level := map[string]access{"read": read, "write": write, "deny": deny, "none": deny}[e.Access]
	switch e.Kind {
	case "path":
		native, err := e.Path.Native()
		if err != nil {
			return &ForeignPath{"permission path", err}
		}
		p.set(native, level)
		p.skip(native, e.Skip)
	case "glob_pattern":
		// A pattern that would grant more is left out: what it names stays as it is.
		switch pattern := absolute(ctx.Cwd, e.Pattern); {
		case level != deny:
		case !strings.ContainsAny(pattern, wildcards):
			p.set(pattern, deny)
		default:
			p.globs = append(p.globs, pattern)
		}
	case "root":
		p.set("/", level)
	case "minimal":
		for _, dir := range minimal {
			p.set(dir, level)
		}
	case "project_roots", "current_working_directory":
		for _, root := range roots {
			if sub := absolute(root, e.Subpath); within(root, sub) && !path.IsAbs(e.Subpath) {
				p.set(sub, level)
				p.skip(sub, e.Skip)
			}
		}
	case "tmpdir":
		if path.IsAbs(ctx.TmpDir) {
			p.set(path.Clean(ctx.TmpDir), level)
		}
	case "slash_tmp":
		p.set("/tmp", level)
	}
	return nil
}

func (p *Policy) set(at string, level access) { p.paths[at] = max(p.paths[at], level) }

// skip remembers whether every entry for a path is to be skipped.
func (p *Policy) skip(at string, skip bool) {
	before, named := p.skipped[at]
	p.skipped[at] = skip && (before || !named)
}

// narrows tells whether anything is taken away from the right to write all.
func (p *Policy) narrows() bool {
	for _, level := range p.paths {
		if level != write {
			return true
		}
	}
	return p.paths["/"] != write || len(p.globs) > 0
}

// Proxy leaves the command only a way out that leads to its proxy, whatever the
// profile says about the network; with unix, unix sockets too.
func (p *Policy) Proxy(unix bool) {
	p.network = proxied
	if unix {
		p.network = proxiedUnix
	}
	if !p.restricted {
		// A network of its own takes namespaces, which take mounts.
		p.restricted = true
		p.paths = map[string]access{"/": write}
	}
}

// Show lets a file be read, wherever it is. It is nothing to nil.
func (p *Policy) Show(at string) {
	if p != nil && p.restricted {
		p.set(at, read)
	}
}

// Refuse says that the policy cannot be enforced, and why: the command ends
// before it begins.
func (p *Policy) Refuse(reason string) {
	p.restricted = true
	p.refused = &Refusal{reason, 101}
}

// Unconfined says that the policy takes nothing away. It is true of nil.
func (p *Policy) Unconfined() bool { return p == nil || !p.restricted && p.network == allOfIt }

// ReadsAll and WritesAll say whether all files may be read or written, so that
// file work needs no confinement.
func (p *Policy) ReadsAll() bool {
	return !p.restricted || p.paths["/"] >= read && p.paths["/"] != deny && !p.denies()
}

// WritesAll is described at ReadsAll.
func (p *Policy) WritesAll() bool { return !p.restricted }

func (p *Policy) denies() bool {
	for _, level := range p.paths {
		if level == deny {
			return true
		}
	}
	return len(p.globs) > 0
}

// shown tells whether what is not named is there.
func (p *Policy) shown() bool { root := p.paths["/"]; return root == read || root == write }

// absolute joins what may be absolute already.
func absolute(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// within tells whether a clean path is a directory or something below it.
func within(dir, at string) bool {
	return at == dir || dir == "/" || strings.HasPrefix(at, dir) && at[len(dir)] == '/'
}
