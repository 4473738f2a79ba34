package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// userNamespaces makes one, in a child.
func (o Options) userNamespaces() Check {
	const name = "user namespaces"
	const file = "/proc/sys/user/max_user_namespaces"
	if limit, err := os.ReadFile(o.sys + file); err == nil && strings.TrimSpace(string(limit)) == "0" {
		return Check{Name: name, Status: Fail, Detail: "switched off: " + file + " is 0", Fix: "sysctl -w user.max_user_namespaces=65536"}
	}
	if err := withUserNamespace(func(int) error { return nil }); err != nil {
		return Check{Name: name, Status: Fail, Detail: "none can be made: " + err.Error(),
			Fix: "use a kernel with CONFIG_USER_NS; in a container, allow it to make namespaces"}
	}
	return ok(name, "made one")
}

// idMappedMounts maps the owners of a directory on Root's file system.
func (o Options) idMappedMounts() Check {
	const name = "id-mapped mounts"
	if os.Geteuid() != 0 {
		return needsRoot(name)
	}
	err := o.inTempDir(func(dir string) error {
		return withUserNamespace(func(ns int) error {
			// The clone is attached nowhere and gone when it is closed.
			tree, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			if err != nil {
				return fmt.Errorf("clone a mount: %w", err)
			}
			defer unix.Close(tree)
			return unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns)})
		})
	})
	if err != nil {
		return Check{Name: name, Status: Warn, Detail: fmt.Sprintf("not at %s: %v; each environment gets a copy of its image", existing(o.Root), err),
			Fix: "put root on ext4, xfs or btrfs, with a kernel of at least 5.19"}
	}
	return ok(name, "work at %s", existing(o.Root))
}

// overlay mounts one on Root's file system, in a mount namespace that ends with
// its thread.
func (o Options) overlay() Check {
	const name = "overlayfs"
	if os.Geteuid() != 0 {
		return needsRoot(name)
	}
	err := o.inTempDir(func(dir string) error {
		for _, sub := range []string{"lower", "upper", "work", "merged"} {
			if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
				return err
			}
		}
		return onOwnThread(func() error {
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
				return fmt.Errorf("make a mount namespace: %w", err)
			}
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return fmt.Errorf("make its mounts private: %w", err)
			}
			merged := filepath.Join(dir, "merged")
			data := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
			if err := unix.Mount("overlay", merged, "overlay", 0, data); err != nil {
				return fmt.Errorf("mount: %w", err)
			}
			err := os.WriteFile(filepath.Join(merged, "file"), []byte("x"), 0o600)
			return errors.Join(err, unix.Unmount(merged, unix.MNT_DETACH))
		})
	})
	if err != nil {
		return Check{Name: name, Status: Fail, Detail: fmt.Sprintf("does not work at %s: %v", existing(o.Root), err),
			Fix: "modprobe overlay; put root on ext4 or xfs, not on another overlay"}
	}
	return ok(name, "works at %s", existing(o.Root))
}

// inTempDir runs f with a directory on Root's file system that is then removed.
func (o Options) inTempDir(f func(dir string) error) error {
	dir, err := os.MkdirTemp(existing(o.Root), ".exec-server-doctor-")
	if err != nil {
		return err
	}
	err = f(dir)
	if rerr := os.RemoveAll(dir); err == nil {
		err = rerr
	}
	return err
}

// onOwnThread runs f on a thread that ends with it, and with it the namespaces
// that f has put the thread into.
func onOwnThread(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		result <- f()
	}()
	return <-result
}

// withUserNamespace gives f a new user namespace. The child that has it is this
// program, stopped by ptrace before its first instruction.
func withUserNamespace(f func(ns int) error) error {
	runtime.LockOSThread() // ptrace is between threads
	defer runtime.UnlockOSThread()
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100000, Size: 65536}}
	if os.Geteuid() != 0 {
		ids = nil // only privileged users may map ids that are not their own
	}
	child, err := os.StartProcess("/proc/self/exe", []string{"exec-server-doctor"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, Ptrace: true, Pdeathsig: syscall.SIGKILL,
	}})
	if err != nil {
		return err
	}
	defer func() {
		_ = child.Kill()
		_, _ = child.Wait()
	}()
	ns, err := unix.Open(fmt.Sprintf("/proc/%d/ns/user", child.Pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(ns)
	return f(ns)
}
