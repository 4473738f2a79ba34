package confine

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// renounce takes from the calling thread, and from what it starts, the way to
// ever have privileges. What it has itself stays, for starting a command as
// another user.
func renounce() error {
	if err := dropBounding(func(uintptr) bool { return true }); err != nil {
		return err
	}
	return noNewPrivileges()
}

func noNewPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("renounce new privileges: %w", err)
	}
	return nil
}

// dropBounding takes capabilities out of the bounding set.
func dropBounding(which func(c uintptr) bool) error {
	for c := uintptr(0); c < 64; c++ {
		if !which(c) {
			continue
		}
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err {
		case nil:
		case unix.EINVAL: // the kernel knows no more
			return nil
		default:
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return nil
}

// keepCapabilities takes from the calling thread all capabilities but some.
func keepCapabilities(keep func(c int) bool) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	for c := range 64 {
		if !keep(c) {
			bit := uint32(1) << (c % 32)
			d := &data[c/32]
			d.Effective, d.Permitted, d.Inheritable = d.Effective&^bit, d.Permitted&^bit, d.Inheritable&^bit
		}
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// Supported says whether this process may confine commands at all.
var Supported = sync.OnceValue(func() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3, Pid: int32(unix.Getpid())}
	var data [2]unix.CapUserData
	return len(initProgram) > 0 && unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
})
