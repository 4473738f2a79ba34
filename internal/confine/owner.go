package confine

import (
	"crypto/rand"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// ownerAttr is on a marker and tells whose it is, so that one which a killed
// server has left behind is not taken for the project's own.
const ownerAttr = "user.exec-server.marker"

// self is this process among others, also of the same number after a restart.
var self = sync.OnceValue(func() string { return fmt.Sprintf("%d %s", unix.Getpid(), rand.Text()) })

// sign puts the owner on a new marker. Where files have no attributes, what is
// left behind stays.
func sign(fd int) { _ = unix.Fsetxattr(fd, ownerAttr, []byte(self()), 0) }

// abandoned tells whether an open file or directory is a marker whose owner is
// gone.
func abandoned(fd int) bool {
	var value [64]byte
	n, err := unix.Fgetxattr(fd, ownerAttr, value[:])
	if err != nil {
		return false
	}
	var pid int
	var nonce string
	if _, err := fmt.Sscanf(string(value[:n]), "%d %s", &pid, &nonce); err != nil || pid <= 0 {
		return false
	}
	if pid == unix.Getpid() {
		return string(value[:n]) != self()
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err == unix.ESRCH
	}
	_ = unix.Close(pidfd)
	return false
}
