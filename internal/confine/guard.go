package confine

import (
	"sync"

	"golang.org/x/sys/unix"
)

// Guard takes from the calling thread, and from what it starts, what the agent
// has over usual containers so that it can confine: two capabilities, and the
// system calls that the container's filter lets pass because of them.
func Guard() error {
	more := func(c uintptr) bool { return c == unix.CAP_SYS_ADMIN || c == unix.CAP_NET_ADMIN }
	if err := dropBounding(more); err != nil {
		return err
	}
	// The filter is installed while the thread may still do so without
	// renouncing setuid programs.
	if err := guardProgram().install(); err != nil {
		return err
	}
	return keepCapabilities(func(c int) bool { return !more(uintptr(c)) })
}

// guardFilter refuses what containers' usual filter refuses to those without
// CAP_SYS_ADMIN.
func guardFilter() filter {
	f := filter{}
	f.refuse(unix.SYS_BPF, unix.SYS_FANOTIFY_INIT, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSOPEN, unix.SYS_FSPICK,
		unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_NAME_TO_HANDLE_AT,
		unix.SYS_OPEN_TREE, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PIVOT_ROOT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_SETDOMAINNAME, unix.SYS_SETHOSTNAME, unix.SYS_SETNS, unix.SYS_SYSLOG, unix.SYS_UMOUNT2, unix.SYS_UNSHARE)
	// The flags of clone3 are out of sight; programs fall back to clone.
	f[unix.SYS_CLONE3] = reply{what: missing}
	f[unix.SYS_CLONE] = reply{what: refused, bits: unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP}
	return f
}

var guardProgram = sync.OnceValue(func() program { return guardFilter().program() })
