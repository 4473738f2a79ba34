// Package discover is capabilityRoots/discoverV1: it finds the plugins and
// skills in directories that the harness names, and returns the texts of their
// files.
//
// All of it happens on the calling goroutine, because that may be locked to a
// thread whose credentials, or whose view of the file system, are not those of
// the process. Files are whatever a command has left there: of each root, each
// file and all together no more than a bound is read into an answer.
package discover

import (
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// Bounds. Those of a root are the reference's own.
const (
	maxRoots       = 128
	maxDepth       = 6
	maxDirectories = 2000
	maxEntries     = 20000
	maxFile        = 1 << 20  // bytes
	maxRoot        = 16 << 20 // bytes of all files of a root
	maxAll         = 64 << 20 // bytes of all files of a request
)

// Request is a root to look through.
type Request struct {
	ID      string
	URI     proto.URI
	Sandbox *proto.Sandbox // nil if there is none
}

// Decode reads the params of capabilityRoots/discoverV1. Its error is a
// *proto.Error.
func Decode(params proto.Value) ([]Request, error) {
	p := proto.ParamsOf(params, "WireCapabilityRootsDiscoverParams")
	roots := p.Required("roots")
	if roots.Kind != proto.Array {
		p.Strings(roots) // which tells that it is no list
		return nil, p.Err()
	}
	list := make([]Request, roots.Len())
	for i := range list {
		sub := p.Sub(roots.At(i), "WireCapabilityRootDiscoverRequest")
		list[i] = Request{ID: sub.String("id"), URI: sub.URI("path"), Sandbox: sub.SandboxParam()}
		p.Join(sub)
	}
	return list, p.Err()
}

// Confine runs f where a sandbox lets it see no more than its profile allows,
// and returns when f has. It fails without having run f if that cannot be done.
type Confine func(sandbox *proto.Sandbox, f func()) error

// Roots looks through all roots, one after the other.
func Roots(list []Request, confine Confine) (proto.Result, error) {
	if len(list) > maxRoots {
		return nil, proto.Invalid("capability root discovery accepts at most %d roots", maxRoots)
	}
	results, left := make(Results, len(list)), int64(maxAll)
	for i, r := range list {
		err := confine(r.Sandbox, func() { results[i] = Root(r.ID, r.URI, left) })
		if err != nil {
			results[i] = failed(r.ID, r.URI, err)
		}
		left -= results[i].size
	}
	return results, nil
}

// Root looks through one root. No more than limit bytes of files get into the
// result, and no more than a root may have.
func Root(id string, uri proto.URI, limit int64) *Result {
	r := &Result{id: id, path: uri.Given()}
	root, err := uri.Native()
	if err != nil {
		return failed(id, uri, err)
	}
	st, err := stat(root)
	switch {
	case err != nil:
		return failed(id, uri, err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		r.failure = "capability root " + r.path + " is not a directory"
		return r
	}
	s := &scan{Result: r, limit: limit}
	s.walk(uri)
	at := placeOf(uri, root)
	s.findPlugin(at)
	s.findNamespaces(at)
	s.findDeclared(at)
	s.findSkills()
	return r
}

func failed(id string, uri proto.URI, err error) *Result {
	path := uri.Given()
	return &Result{id: id, path: path, failure: "failed to inspect capability root " + path + ": " + proto.WireError(err).Message}
}

// stat describes what a path leads to.
func stat(path string) (st unix.Stat_t, err error) {
	for {
		if err = unix.Stat(path, &st); err != unix.EINTR {
			return st, err
		}
	}
}
