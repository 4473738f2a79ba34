package fs

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

func decodeGetMetadata(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsGetMetadataParams")
	t := linkTargetParam(p)
	return func(f *Files) (proto.Result, error) { return f.within(t.sandbox, reading, t.metadata) }, p.Err()
}

// metadata is the result of fs/getMetadata.
type metadata struct {
	kind              uint32 // S_IFMT part of the mode
	link              bool
	size              int64 // bytes
	created, modified int64 // Unix milliseconds, 0 if not known
}

func (t target) metadata() (proto.Result, error) {
	at, err := t.place()
	if err != nil {
		return nil, err
	}
	defer at.close()
	st, err := at.stat()
	if err != nil {
		return nil, err
	}
	m := metadata{kind: st.Mode & unix.S_IFMT, size: st.Size, modified: milliseconds(st.Mtim.Unix())}
	if t.follow {
		m.modified = max(m.modified, 0) // only this way of asking has no past
		info, err := os.Lstat(at.path)
		if err != nil {
			return nil, err
		}
		m.link = info.Mode()&os.ModeSymlink != 0
		return m, nil
	}
	if m.kind == unix.S_IFLNK {
		return nil, errLink()
	}
	var stx unix.Statx_t
	err = unix.Statx(at.dir, at.name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &stx)
	if err == nil && stx.Mask&unix.STATX_BTIME != 0 { // an extra that old systems lack
		m.created = milliseconds(stx.Btime.Sec, int64(stx.Btime.Nsec))
	}
	return m, nil
}

func errLink() error { return proto.Invalid("path contains a symbolic link") }

// milliseconds is 0 for times that are out of range.
func milliseconds(sec, nsec int64) int64 {
	if sec <= math.MinInt64/1000 || sec >= math.MaxInt64/1000 {
		return 0
	}
	return sec*1000 + nsec/1e6
}

// AppendJSON implements proto.Result.
func (m metadata) AppendJSON(dst []byte) []byte {
	dst = proto.AppendBool(append(dst, `{"isDirectory":`...), m.kind == unix.S_IFDIR)
	dst = proto.AppendBool(append(dst, `,"isFile":`...), m.kind == unix.S_IFREG)
	dst = proto.AppendBool(append(dst, `,"isSymlink":`...), m.link)
	dst = proto.AppendInt(append(dst, `,"size":`...), m.size)
	dst = proto.AppendInt(append(dst, `,"createdAtMs":`...), m.created)
	dst = proto.AppendInt(append(dst, `,"modifiedAtMs":`...), m.modified)
	return append(dst, '}')
}

func decodeCanonicalize(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsCanonicalizeParams")
	t := targetParam(p, "path")
	return func(f *Files) (proto.Result, error) {
		path, err := t.native()
		if err != nil {
			return nil, err
		}
		return f.within(t.sandbox, reading, func() (proto.Result, error) {
			if path, err = realPath(path); err != nil {
				return nil, err
			}
			return proto.JSON(append(proto.AppendURI([]byte(`{"path":`), path), '}')), nil
		})
	}, p.Err()
}

// realPath resolves every link of a path, all of which has to exist.
func realPath(path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", err // the system's own error, which EvalSymlinks has not always
	}
	resolved, err := filepath.EvalSymlinks(path)
	if _, ok := errors.AsType[syscall.Errno](err); err != nil && !ok {
		err = syscall.ELOOP // swapped since: the only failure without a number
	}
	return resolved, err
}

// fileID tells files apart while they exist.
type fileID struct{ dev, ino uint64 }

func idOf(info os.FileInfo) fileID {
	st := info.Sys().(*syscall.Stat_t)
	return fileID{dev: st.Dev, ino: st.Ino}
}
