package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// newDevices makes a detached /dev with what every program expects and nothing
// else: the harmless devices of the present one, terminals and shared memory of
// its own.
func newDevices() (int, error) {
	dev, err := fresh("tmpfs", unix.MOUNT_ATTR_NOSUID, "mode=0755", "size=64k", "nr_inodes=64")
	if err != nil {
		return -1, err
	}
	nodes := map[string]int{}
	defer func() {
		for _, fd := range nodes {
			_ = unix.Close(fd)
		}
	}()
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		node, err := cloneAt("/dev/"+name, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
		if err != nil {
			_ = unix.Close(dev)
			return -1, err
		}
		nodes[name] = node
	}
	if err := furnish(dev, nodes); err != nil {
		_ = unix.Close(dev)
		return -1, fmt.Errorf("new /dev: %w", err)
	}
	return dev, nil
}

func furnish(dev int, nodes map[string]int) error {
	links := map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"core": "/proc/kcore", "ptmx": "pts/ptmx",
	}
	for name, target := range links {
		if err := unix.Symlinkat(target, dev, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	// Only on what is mounted itself can something be mounted. On /mnt or the
	// like it would need that directory to be there; on / it is out of the way.
	if err := unix.MoveMount(dev, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return err
	}
	put := func(mount int, name string, dir bool) error {
		if err := makePoint(dev, name, dir); err != nil {
			return err
		}
		if err := unix.MoveMount(mount, "", dev, name, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	for name, node := range nodes {
		if err := put(node, name, false); err != nil {
			return err
		}
	}
	for name, make := range map[string]func() (int, error){
		"pts": func() (int, error) {
			return fresh("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "newinstance", "ptmxmode=0666", "mode=0620")
		},
		"shm": func() (int, error) { return fresh("tmpfs", confined, "mode=1777") },
	} {
		mount, err := make()
		if err != nil {
			return err
		}
		err = put(mount, name, true)
		_ = unix.Close(mount)
		if err != nil {
			return err
		}
	}
	return makePoint(dev, "console", false)
}
