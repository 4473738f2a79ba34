package containerd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// stateOptions limit what a container can put into the files that it shares
// with the host: they would else fill the host's /run.
const stateOptions = "mode=0711,size=256k,nr_inodes=64"

// resolvers is the resolv.conf of a sandbox. It names no name server of this
// machine's: the daemon answers what is sent to any address, as the policy lets
// it. With mode "none" none can be reached, and nobody should wait for it.
func resolvers(mode rules.Mode) string {
	patience := "timeout:5 attempts:2"
	if mode == "" || mode == rules.None {
		patience = "timeout:1 attempts:1"
	}
	return "# exec-server answers, as far as the network policy lets it.\n" +
		"nameserver 192.0.0.1\noptions " + patience + "\n"
}

// stateDir is the directory of what the daemon and one container share. It is a
// file system of its own, which ends with the container.
type stateDir string

// stateDir returns the directory of the container.
func (r *Runtime) stateDir(id string) stateDir {
	return stateDir(filepath.Join(r.opts.State, "e", id))
}

// io is the directory of the agent's socket. The container's root owns it.
func (d stateDir) io() string { return filepath.Join(string(d), "io") }

// fifos is the directory of the pipes for the agent's standard error.
func (d stateDir) fifos() string { return filepath.Join(string(d), "f") }

// make mounts the directory and fills it.
func (d stateDir) make(host string, ids idRange, mode rules.Mode) error {
	if err := os.Mkdir(string(d), 0o711); err != nil {
		return err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("tmpfs", string(d), "tmpfs", flags, stateOptions); err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", d, err)
	}
	if err := makeOwned(d.io(), 0o700, ids); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"resolv.conf": resolvers(mode),
		"hosts": "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
			"127.0.1.1\t" + host + "\n",
		"hostname": host + "\n",
	} {
		path := filepath.Join(string(d), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		if err := errors.Join(os.Chmod(path, 0o644), os.Lchown(path, int(ids.base), int(ids.base))); err != nil {
			return err
		}
	}
	return nil
}

// patience fits resolv.conf to another mode of the network policy, unless the sandbox
// has made it its own. Without that look-ups work as well, if they do not take long.
func (d stateDir) patience(before, now rules.Mode) {
	path := filepath.Join(string(d), "resolv.conf")
	text, err := os.ReadFile(path)
	if err == nil && string(text) == resolvers(before) && resolvers(before) != resolvers(now) {
		_ = os.WriteFile(path, []byte(resolvers(now)), 0o644)
	}
}

// remove unmounts and removes the directory. It may be gone already.
func (d stateDir) remove() error {
	for {
		err := unix.Unmount(string(d), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
			break // not, or no longer, a mount
		}
		if err != nil {
			return fmt.Errorf("unmount %s: %w", d, err)
		}
	}
	return removeTree(string(d))
}
