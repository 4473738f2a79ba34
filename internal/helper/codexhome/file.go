package codexhome

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/proto"
)

// errNotFile says that something else than a regular file has the name.
var errNotFile = errors.New("not a file")

// errTooLarge says that a file is over its bound.
var errTooLarge = errors.New("too large")

// read reads a regular file of up to limit bytes. It does not wait for what may
// be a pipe.
func read(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errNotFile
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errTooLarge
	}
	return data, err
}

// missing tells whether an error means that there is no such file.
func missing(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// words are an error in the reference's words.
func words(path string, err error) string {
	if errors.Is(err, errNotFile) || errors.Is(err, syscall.ENXIO) {
		return fmt.Sprintf("path `%s` is not a file", path)
	}
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return proto.ErrnoText(no)
	}
	return err.Error()
}
