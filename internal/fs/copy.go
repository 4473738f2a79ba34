package fs

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

func decodeCopy(params proto.Value) (operation, error) {
	p := proto.ParamsOf(params, "FsCopyParams")
	source, destination := targetParam(p, "sourcePath"), targetParam(p, "destinationPath")
	recursive := p.Bool("recursive")
	return func(f *Files) (proto.Result, error) {
		src, err := source.native()
		if err != nil {
			return nil, err
		}
		dst, err := destination.native()
		if err != nil {
			return nil, err
		}
		return f.within(source.sandbox, writing, func() (proto.Result, error) { return empty(copyAny(src, dst, recursive)) })
	}, p.Err()
}

func copyAny(src, dst string, recursive bool) error {
	info, err := os.Lstat(src)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		done, err := copyEntry(src, dst, info.Mode().Type())
		if err == nil && !done {
			err = proto.Invalid("fs/copy only supports regular files, directories, and symlinks")
		}
		return err
	}
	if !recursive {
		return proto.Invalid("fs/copy requires recursive: true when sourcePath is a directory")
	}
	inside, err := isInside(src, dst)
	if err == nil && inside {
		err = proto.Invalid("fs/copy cannot copy a directory to itself or one of its descendants")
	}
	if err != nil {
		return err
	}
	return copyDirectory(src, dst)
}

// copyEntry copies what is not a directory. It reports false for what cannot be
// copied: fifos, sockets, devices.
func copyEntry(src, dst string, kind os.FileMode) (bool, error) {
	switch kind {
	case 0:
		return true, copyFile(src, dst)
	case os.ModeSymlink:
		to, err := os.Readlink(src)
		if err != nil {
			return true, err
		}
		return true, os.Symlink(to, dst)
	}
	return false, nil
}

// copyDirectory copies a tree into a directory that is there or made. Its depth
// is bounded by the length of a path.
func copyDirectory(src, dst string) error {
	dir, err := openDirectory(src, unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := makeAll(dst); err != nil {
		return err
	}
	for {
		batch, err := dir.ReadDir(readBatch)
		for _, entry := range batch {
			from, to := filepath.Join(src, entry.Name()), filepath.Join(dst, entry.Name())
			if err := copyBelow(from, to, entry.Type()); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func copyBelow(src, dst string, kind os.FileMode) error {
	if kind.IsDir() {
		return copyDirectory(src, dst)
	}
	_, err := copyEntry(src, dst, kind) // special files are left out
	return err
}

// isInside says whether dst is, or would come to lie in, the directory src.
func isInside(src, dst string) (bool, error) {
	src, err := realPath(src)
	if err != nil {
		return false, err
	}
	existing, missing := dst, ""
	for _, err := os.Stat(existing); err != nil && existing != "/"; _, err = os.Stat(existing) {
		missing = filepath.Join(filepath.Base(existing), missing)
		existing = filepath.Dir(existing)
	}
	if existing, err = realPath(existing); err != nil {
		return false, err
	}
	return strings.HasPrefix(filepath.Join(existing, missing)+"/", strings.TrimSuffix(src, "/")+"/"), nil
}
