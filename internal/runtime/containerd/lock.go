package containerd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrInUse says that another process runs a Server on the store. Connect to its
// Address instead.
var ErrInUse = errors.New("the store is in use by another exec-server")

// lockStore takes the store for this process, until the file is closed or the
// process ends. containerd itself would wait for its database without a word.
func lockStore(root string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(root, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	// A daemon that was killed while it started a process has left the lock to
	// that process, for a moment.
	for patience := time.Second; ; patience -= 10 * time.Millisecond {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if errors.Is(err, unix.EWOULDBLOCK) && patience > 0 {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrInUse
		}
		return nil, fmt.Errorf("lock %s: %w", root, err)
	}
}
