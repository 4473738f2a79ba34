package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// mmdebstrap makes the recipe's root file system and writes it to out as a tar.
// It works below dir, which the caller removes.
//
// The program runs as PID 1 of a PID namespace and in a mount namespace of its
// own: however it ends, and if this process dies too, nothing that it started
// and no mount of its chroot is left.
func (r Recipe) mmdebstrap(ctx context.Context, dir string, out io.Writer, p Progress) error {
	path, err := exec.LookPath("mmdebstrap")
	if err != nil {
		return errors.New("mmdebstrap, which builds the image, is not installed; run: apt-get install mmdebstrap")
	}
	sources := hostSources("/etc/apt", r.Suite)
	messages := &messages{progress: p}
	cmd := exec.CommandContext(ctx, path, r.arguments(sources)...)
	cmd.Env = buildEnv(ctx, dir, r.Epoch)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(sources)
	cmd.Stdout = out
	cmd.Stderr = messages
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID,
		// Unlike Cloneflags, Unshareflags makes the mounts private too.
		Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig:    syscall.SIGKILL,
	}
	// The signal comes when the thread that started the process ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return nil
	case messages.errors() != "":
		return fmt.Errorf("mmdebstrap: %s", messages.errors())
	}
	return fmt.Errorf("mmdebstrap: %w", err)
}

func (r Recipe) arguments(sources string) []string {
	args := []string{"--mode=root", "--variant=minbase", "--format=tar", "--skip=output/dev",
		"--include=" + strings.Join(r.Packages, ",")}
	for _, pattern := range r.Exclude {
		args = append(args, "--dpkgopt=path-exclude="+pattern)
	}
	for _, pattern := range r.Keep {
		args = append(args, "--dpkgopt=path-include="+pattern)
	}
	args = append(args, "--customize-hook="+r.hook(), r.Suite, "-")
	if sources != "" {
		args = append(args, "-") // mirrors from standard input
	}
	return args
}

// hook is the shell script that makes the user and removes what is of no use or
// differs between hosts and runs. mmdebstrap itself removes package lists, caches
// and most logs, and empties /etc/machine-id.
func (r Recipe) hook() string {
	u := r.User
	return strings.Join([]string{"set -eu",
		fmt.Sprintf(`chroot "$1" groupadd --gid %d %s`, u.GID, u.Name),
		fmt.Sprintf(`chroot "$1" useradd --uid %d --gid %d --home-dir %s --create-home --shell %s %s`, u.UID, u.GID, u.Home, u.Shell, u.Name),
		fmt.Sprintf(`install -d -o %d -g %d "$1"%s`, u.UID, u.GID, r.Config.Workdir),
		`rm -f "$1"/etc/hostname "$1"/etc/resolv.conf "$1"/etc/*- "$1"/etc/.pwd.lock`,
		`rm -f "$1"/var/cache/debconf/*-old "$1"/var/lib/dpkg/*-old`,
		`rm -f "$1"/var/log/btmp "$1"/var/log/wtmp "$1"/var/log/lastlog "$1"/var/log/faillog`,
	}, "\n")
}

// buildEnv is mmdebstrap's whole environment.
func buildEnv(ctx context.Context, dir string, epoch int64) []string {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + dir, "TMPDIR=" + dir, "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
		fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch),
	}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		} else if scheme, _, _ := strings.Cut(name, "_"); scheme != "no" {
			// mmdebstrap does not look at the host's configuration of apt.
			out, err := exec.CommandContext(ctx, "apt-config", "shell", "P", "Acquire::"+scheme+"::Proxy").Output()
			if value := strings.TrimSuffix(strings.TrimPrefix(string(bytes.TrimSpace(out)), "P='"), "'"); err == nil && value != "" {
				env = append(env, name+"="+value)
			}
		}
	}
	return env
}
