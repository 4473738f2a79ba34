package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// File reads a whole regular file of at most limit bytes. Its errors have the path,
// and nothing of the content.
func File(path string, limit int) ([]byte, error) {
	info, err := os.Stat(path) // before the open, which a pipe would block
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is a directory")}
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(text) > limit {
		return nil, fmt.Errorf("read %s: it has more than %d bytes", path, limit)
	}
	return text, nil
}
