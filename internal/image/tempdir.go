package image

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// tempDir makes a directory for a build, which lives as long as its lock, and
// removes those that dead processes left.
func tempDir() (dir string, remove func() error, err error) {
	parent := os.Getenv("TMPDIR")
	if parent == "" {
		parent = "/var/tmp" // unlike /tmp never in memory
	}
	left, _ := filepath.Glob(filepath.Join(parent, "exec-server-build-*"))
	for _, old := range left {
		// A young one may not have its lock yet.
		if info, err := os.Lstat(old); err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		if f, err := lockDir(old); err == nil {
			os.RemoveAll(old)
			f.Close()
		}
	}
	if dir, err = os.MkdirTemp(parent, "exec-server-build-"); err != nil {
		return "", nil, err
	}
	lock, err := lockDir(dir)
	if err == nil {
		err = os.Chmod(dir, 0o711) // apt drops its privileges to download
	}
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, func() error {
		defer lock.Close()
		return os.RemoveAll(dir)
	}, nil
}

func lockDir(dir string) (*os.File, error) {
	// The parent is open to all users.
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
