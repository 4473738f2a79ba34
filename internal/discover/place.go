package discover

import (
	"strings"

	"github.com/exec-server/exec-server/internal/proto"
)

// place is a file or directory: its name on the wire, with no slash at the end,
// and its path.
type place struct{ uri, path string }

// placeOf is the place that a harness has named.
func placeOf(uri proto.URI, path string) place {
	return place{uri: strings.TrimSuffix(uri.Given(), "/"), path: path}
}

// below is what a relative path without dot segments leads to.
func (p place) below(name string) place {
	escaped := strings.TrimPrefix(proto.FileURI("/"+name).String(), "file:///")
	return place{uri: p.uri + "/" + escaped, path: strings.TrimSuffix(p.path, "/") + "/" + name}
}

// parent is the directory that p is in. It is not ok for the root, which is in
// none.
func (p place) parent() (up place, ok bool) {
	slash := strings.LastIndexByte(p.path, '/')
	if p.path == "/" || slash < 0 {
		return place{}, false
	}
	up.path = p.path[:max(slash, 1)]
	const scheme = "file://"
	uri := strings.TrimRight(strings.TrimPrefix(p.uri, scheme), "/")
	up.uri = scheme + strings.TrimRight(uri[:max(strings.LastIndexByte(uri, '/'), 0)], "/")
	// A URI may be written so that its slashes are not those of the path.
	if u, err := proto.ParseURI(up.uri + "/"); err == nil {
		if path, err := u.Native(); err == nil && path == up.path {
			return up, true
		}
	}
	return placeOf(proto.FileURI(up.path), up.path), true
}

// base is the last component.
func (p place) base() string { return p.path[strings.LastIndexByte(p.path, '/')+1:] }
