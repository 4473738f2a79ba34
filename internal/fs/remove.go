package fs

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

func decodeRemove(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsRemoveParams")
	t := linkTargetParam(p)
	recursive, force := p.NullableBool("recursive", true), p.NullableBool("force", true)
	return func(f *Files) (proto.Result, error) {
		if !t.follow && recursive {
			return nil, proto.Errorf(proto.CodeInternal, "recursive no-follow removal is unsupported")
		}
		return f.within(t.sandbox, writing, func() (proto.Result, error) {
			err := t.remove(recursive)
			if force && errors.Is(err, unix.ENOENT) {
				err = nil
			}
			return empty(err)
		})
	}, p.Err()
}

func (t target) remove(recursive bool) error {
	at, err := t.place()
	if err != nil {
		return err
	}
	defer at.close()
	if at.path == "/" {
		return unix.EBUSY // as rmdir says, and before all that it holds is gone
	}
	at.follow = false // the last component is what is removed, link or not
	st, err := at.stat()
	if err != nil {
		return err
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFLNK && !t.follow:
		return errLink()
	case kind != unix.S_IFDIR:
		return at.remove(0)
	case recursive:
		return at.removeTree()
	}
	return at.remove(unix.AT_REMOVEDIR)
}
