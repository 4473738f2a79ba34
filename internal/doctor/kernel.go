package doctor

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernel wants what the agent and the runtime call: openat2, close_range and
// pidfds are all in 5.10, the long-term kernel of Debian 11.
func kernel() Check {
	var uname unix.Utsname
	if err := unix.Uname(&uname); err != nil {
		return Check{Name: "kernel", Status: Fail, Detail: err.Error()}
	}
	return kernelVersion(unix.ByteSliceToString(uname.Release[:]))
}

func kernelVersion(release string) Check {
	var v [2]int
	if _, err := fmt.Sscanf(release, "%d.%d", &v[0], &v[1]); err != nil {
		return Check{Name: "kernel", Status: Warn, Detail: fmt.Sprintf("%q is no version that this program can read", release)}
	}
	switch {
	case v[0] < 5 || v[0] == 5 && v[1] < 10:
		return Check{Name: "kernel", Status: Fail, Detail: release + " is too old", Fix: "install a kernel of at least 5.10, better 5.19"}
	case v[0] == 5 && v[1] < 19:
		return Check{Name: "kernel", Status: Warn, Detail: release + " cannot map the owners of image layers; each environment gets a copy",
			Fix: "install a kernel of at least 5.19"}
	}
	return ok("kernel", "%s", release)
}

func superuser() Check {
	if uid := os.Geteuid(); uid != 0 {
		return Check{Name: "root", Status: Fail, Detail: fmt.Sprintf("running as user %d; containers need root", uid), Fix: "run it as root"}
	}
	return ok("root", "running as root")
}

// seccomp asks whether filters can deny system calls.
func seccomp() Check {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return Check{Name: "seccomp", Status: Fail, Detail: "not available: " + errno.Error(), Fix: "use a kernel with CONFIG_SECCOMP_FILTER"}
	}
	return ok("seccomp", "filters are available")
}
