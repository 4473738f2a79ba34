package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// What Root's file system must have free, and should have: the default image
// takes about half a GiB, layer and snapshot.
const (
	minFree    = 100 << 20
	wantFree   = 5 << 30
	minInodes  = 10_000
	wantInodes = 100_000
)

const freeFix = "free some, or set root in the configuration to a directory elsewhere"

func disk(dir string) Check {
	const name = "disk space"
	dir = existing(dir)
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return Check{Name: name, Status: Fail, Detail: fmt.Sprintf("%s: %v", dir, err)}
	}
	free := fs.Bavail * uint64(fs.Bsize)
	c := ok(name, "%.1f GiB free at %s", float64(free)/(1<<30), dir)
	switch {
	case fs.Flags&unix.ST_RDONLY != 0:
		return Check{Name: name, Status: Fail, Detail: dir + " is on a read-only file system", Fix: "set root in the configuration to a directory elsewhere"}
	case free < minFree:
		c.Status, c.Detail = Fail, fmt.Sprintf("%d MiB free at %s, %d MiB are needed", free>>20, dir, minFree>>20)
	case free < wantFree:
		c.Status = Warn
	}
	if c.Status != OK {
		c.Fix = freeFix
	}
	return c
}

func inodes(dir string) Check {
	const name = "inodes"
	dir = existing(dir)
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return Check{Name: name, Status: Fail, Detail: fmt.Sprintf("%s: %v", dir, err)}
	}
	c := ok(name, "%d free at %s", fs.Ffree, dir)
	switch {
	case fs.Files == 0: // btrfs and others have no limit
		return ok(name, "without limit at %s", dir)
	case fs.Ffree < minInodes:
		c.Status = Fail
	case fs.Ffree < wantInodes:
		c.Status = Warn
	}
	if c.Status != OK {
		c.Fix = freeFix
	}
	return c
}

// maxState is the longest directory of sockets, in bytes: the longest name in it
// is /s/ and a hash of 64 digits, and a socket's path has room for 107 bytes.
const maxState = 107 - len("/s/") - 64

func sockets(state string) Check {
	if len(state) > maxState {
		return Check{Name: "socket paths", Status: Fail, Detail: fmt.Sprintf("%s has %d bytes, %d is the most for the sockets in it", state, len(state), maxState),
			Fix: "use a shorter directory"}
	}
	return ok("socket paths", "fit below %s", state)
}
