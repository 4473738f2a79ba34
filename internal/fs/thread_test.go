package fs

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody runs a function on a thread of its own that has the rights of another
// user, while the rest of the process stays root.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		const nobody = 65534
		unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		unix.RawSyscall(unix.SYS_SETRESGID, nobody, nobody, nobody)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			t.Errorf("setresuid: %v", errno)
			return
		}
		f()
	}()
	<-done
}

// Every operation has the rights of the thread that it is called on, and makes
// files that belong to that user.
func TestThreadCredentials(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "f=F", "root/d/g=G", "root/secret/h=H", "open/")
	for name, mode := range map[string]os.FileMode{"f": 0o600, "root/secret": 0o700, "open": 0o777} {
		check(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	asNobody(t, func() {
		run(t, dir, []req{
			{"readFile", `{"path":"$U/f"}`, eacces},
			{"readFile", `{"path":"$U/f","followSymlinks":false}`, eacces},
			{"readFile", `{"path":"$U/root/secret/h"}`, eacces},
			{"writeFile", `{"path":"$U/f","dataBase64":""}`, eacces},
			{"writeFile", `{"path":"$U/new","dataBase64":""}`, eacces},
			{"createDirectory", `{"path":"$U/root/x"}`, eacces},
			{"createDirectory", `{"path":"$U/root/x","followSymlinks":false}`, eacces},
			{"getMetadata", `{"path":"$U/root/secret/h"}`, eacces},
			{"getMetadata", `{"path":"$U/root/secret/h","followSymlinks":false}`, eacces},
			{"canonicalize", `{"path":"$U/root/secret/h"}`, eacces},
			{"readDirectory", `{"path":"$U/root/secret"}`, eacces},
			{"remove", `{"path":"$U/f"}`, eacces},
			{"remove", `{"path":"$U/root"}`, eacces},
			{"remove", `{"path":"$U/f","recursive":false,"followSymlinks":false}`, eacces},
			{"copy", `{"sourcePath":"$U/f","destinationPath":"$U/open/f","recursive":false}`, eacces},
			{"copy", `{"sourcePath":"$U/root","destinationPath":"$U/open/root","recursive":true}`, eacces},
			{"open", `{"handleId":"h","path":"$U/f"}`, eacces},
			{"open", `{"handleId":"h","path":"$U/f","mode":"replace"}`, eacces},
			{"writeFile", `{"path":"$U/open/w","dataBase64":b64(w)}`, ok},
			{"writeFile", `{"path":"$U/open/n","dataBase64":b64(n),"followSymlinks":false}`, ok},
			{"createDirectory", `{"path":"$U/open/d/e"}`, ok},
			{"createDirectory", `{"path":"$U/open/nd/e","followSymlinks":false}`, ok},
			{"copy", `{"sourcePath":"$U/open/w","destinationPath":"$U/open/c","recursive":false}`, ok},
			{"open", `{"handleId":"h","path":"$U/open/h","mode":"replace"}`, `{"handleId":"h"}`},
		})
		const want = "root/d/ root/secret/ root/d/g error:root/secret:Permission denied (os error 13)"
		if got := walked(t, dir, walkParams("/root", 9, 9, 9, false, "")); got != want {
			t.Errorf("walk: got %s, want %s", got, want)
		}
	})
	holds(t, filepath.Join(dir, "f"), "F")
	holds(t, filepath.Join(dir, "root/d/g"), "G")
	for _, name := range []string{"w", "n", "d/e", "nd/e", "c", "h"} {
		info, err := os.Stat(filepath.Join(dir, "open", name))
		check(t, err)
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 65534 {
			t.Errorf("%s belongs to %d", name, uid)
		}
	}
}
