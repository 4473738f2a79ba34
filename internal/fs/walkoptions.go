package fs

import "github.com/exec-server/exec-server/internal/proto"

// Bounds of a walk's options.
const (
	maxWalkDepth       = 64
	maxWalkDirectories = 10000
	maxWalkEntries     = 50000
)

type walkOptions struct {
	maxDepth, maxDirectories, maxEntries uint64
	follow, pruneHidden                  bool
}

func decodeWalk(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsWalkParams")
	t := targetParam(p, "path")
	var o walkOptions
	if sub := p.Sub(p.Required("options"), "WalkOptions"); sub != nil {
		o.maxDepth = sub.Uint("maxDepth")
		o.maxDirectories = sub.Uint("maxDirectories")
		o.maxEntries = sub.Uint("maxEntries")
		o.follow = sub.Bool("followDirectorySymlinks")
		o.pruneHidden = sub.BoolOr("pruneHiddenDirectories", false)
		p.Join(sub)
	}
	return func(f *Files) (proto.Result, error) {
		if err := o.check(); err != nil {
			return nil, err
		}
		if _, err := t.native(); err != nil {
			return nil, err
		}
		return f.within(t.sandbox, reading, func() (proto.Result, error) { return walk(t.uri, o) })
	}, p.Err()
}

func (o walkOptions) check() error {
	if o.maxDirectories == 0 || o.maxEntries == 0 {
		return proto.Invalid("filesystem walk limits must be greater than zero")
	}
	if o.maxDepth > maxWalkDepth || o.maxDirectories > maxWalkDirectories || o.maxEntries > maxWalkEntries {
		return proto.Invalid("filesystem walk limits exceed maximums: depth=%d, directories=%d, entries=%d",
			maxWalkDepth, maxWalkDirectories, maxWalkEntries)
	}
	return nil
}
