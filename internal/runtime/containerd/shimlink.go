package containerd

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// linkShim returns the path of a link named shimName to this program, in a
// directory of its own below dir for each build of the program: the shims of an
// earlier build start themselves again from theirs.
func linkShim(dir string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &st); err != nil {
		return "", fmt.Errorf("look at this program: %w", err)
	}
	// Which build it is: its content would do, but takes long to read.
	id := sha256.Sum256(fmt.Appendf(nil, "%d %d %d %d", st.Dev, st.Ino, st.Size, st.Mtim.Nano()))
	at := filepath.Join(dir, fmt.Sprintf("%x", id[:6]), shimName)
	if _, err := os.Lstat(at); err == nil {
		return at, nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return "", err
	}
	temp := at + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	// Through /proc, this finds the file that runs even where its name has been
	// given to another since. Other file systems, and deleted files, need a copy.
	if err := unix.Linkat(unix.AT_FDCWD, "/proc/self/exe", unix.AT_FDCWD, temp, unix.AT_SYMLINK_FOLLOW); err != nil {
		if err := copySelf(temp); err != nil {
			return "", err
		}
	}
	return at, os.Rename(temp, at)
}

// copySelf copies this program.
func copySelf(to string) error {
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
