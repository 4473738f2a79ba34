package containerd

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// makeOwned makes a directory for the container's root, unless it is there.
func makeOwned(path string, mode os.FileMode, ids idRange) error {
	err := os.Mkdir(path, mode)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is not a directory", path)
	case ids.has(st.Uid) && ids.has(st.Gid):
		return nil
	case st.Uid != 0:
		return fmt.Errorf("%s belongs to user %d and not to its environment", path, st.Uid)
	}
	// It is new: nobody else can have got in to replace it meanwhile.
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	return os.Lchown(path, int(ids.base), int(ids.base))
}

// writeFile writes a file that is whole or not there, even after a power cut.
func writeFile(path string, text []byte) error {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
