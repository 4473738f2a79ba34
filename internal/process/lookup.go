package process

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const defaultPath = "/usr/local/bin:/bin:/usr/bin"

// lookup finds the program that execvp would run: names without a slash in the
// PATH of the command's own environment, relative ones below its cwd.
func lookup(name, cwd string, env map[string]string) (string, error) {
	if strings.Contains(name, "/") {
		return below(cwd, name), nil
	}
	if name == "" {
		return "", syscall.ENOENT
	}
	path, hasPath := env["PATH"]
	if !hasPath {
		path = defaultPath
	}
	denied := false
	for dir := range strings.SplitSeq(path, ":") { // "" has one part, the working directory
		candidate := below(cwd, dir) + "/" + name
		switch err := executable(candidate); err {
		case nil:
			return candidate, nil
		case syscall.EACCES:
			denied = true
		}
	}
	if denied {
		return "", syscall.EACCES
	}
	return "", syscall.ENOENT
}

func below(cwd, path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	if path == "" {
		return cwd
	}
	return cwd + "/" + path
}

func executable(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return syscall.EACCES
	}
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
}
