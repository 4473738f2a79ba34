package fs

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// maxEntries is how many entries fs/readDirectory returns.
const maxEntries = 50000

// readBatch is how many entries are taken from a directory at a time.
const readBatch = 1024

func decodeCreateDirectory(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsCreateDirectoryParams")
	t := linkTargetParam(p)
	recursive := p.NullableBool("recursive", true)
	return func(f *Files) (proto.Result, error) {
		return f.within(t.sandbox, writing, func() (proto.Result, error) { return empty(t.createDirectory(recursive)) })
	}, p.Err()
}

func (t target) createDirectory(recursive bool) error {
	if !recursive {
		at, err := t.place()
		if err != nil {
			return err
		}
		defer at.close()
		if err := mkdirat(at.dir, at.name); err != nil {
			return &os.PathError{Op: "mkdir", Path: at.path, Err: err}
		}
		return nil
	}
	path, err := t.native()
	if err != nil {
		return err
	}
	if t.follow {
		return makeAll(path)
	}
	dir, err := descend(path, true)
	if err != nil {
		return err
	}
	return unix.Close(dir)
}

// makeAll makes a directory and its parents. Unlike os.MkdirAll it says EEXIST
// if a file has the name.
func makeAll(path string) error {
	err := os.Mkdir(path, 0o777)
	if errors.Is(err, unix.ENOENT) && path != "/" {
		if err := makeAll(filepath.Dir(path)); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o777)
	}
	if err != nil {
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

func decodeReadDirectory(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsReadDirectoryParams")
	t := targetParam(p, "path")
	return func(f *Files) (proto.Result, error) {
		path, err := t.native()
		if err != nil {
			return nil, err
		}
		return f.within(t.sandbox, reading, func() (proto.Result, error) { return readDirectory(path, maxEntries) })
	}, p.Err()
}

// openDirectory opens a directory for reading; anything else is ENOTDIR and
// stays untouched. flags may be O_NOFOLLOW.
func openDirectory(path string, flags int) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|flags, 0)
}

// readDirectory renders the entries of a directory. All are counted, but no
// more than limit kept.
func readDirectory(path string, limit int) (proto.Result, error) {
	dir, err := openDirectory(path, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	list := []byte(`{"entries":[`)
	for n := 0; ; {
		batch, err := dir.ReadDir(readBatch)
		for _, entry := range batch {
			mode := entry.Type()
			if mode&os.ModeSymlink != 0 {
				info, err := os.Stat(filepath.Join(path, entry.Name()))
				if err != nil {
					continue
				}
				mode = info.Mode()
			}
			if n++; n > 1 && n <= limit {
				list = append(list, ',')
			}
			if n <= limit {
				list = appendEntry(list, entry.Name(), mode)
			}
		}
		switch {
		case err != nil && err != io.EOF:
			return nil, err
		case err == nil:
		case n > limit:
			return nil, proto.Errorf(proto.CodeInternal, "fs/readDirectory returned %d entries; limit is %d", n, limit)
		default:
			return proto.JSON(append(list, "]}"...)), nil
		}
	}
}

func appendEntry(dst []byte, name string, mode os.FileMode) []byte {
	dst = proto.AppendString(append(dst, `{"fileName":`...), name)
	dst = proto.AppendBool(append(dst, `,"isDirectory":`...), mode.IsDir())
	dst = proto.AppendBool(append(dst, `,"isFile":`...), mode.IsRegular())
	return append(dst, '}')
}
