package doctor

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"
)

// runc wants 1.1.5 or later, the oldest that was tried.
func runc(ctx context.Context, path string) Check {
	const name, fix = "runc", "apt-get install runc"
	if path == "" {
		path = "runc"
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return Check{Name: name, Status: Fail, Detail: strings.TrimPrefix(err.Error(), "exec: "), Fix: fix}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, found, "--version").Output()
	if err != nil {
		return Check{Name: name, Status: Fail, Detail: fmt.Sprintf("%s --version: %v", found, err), Fix: fix}
	}
	first, _, _ := strings.Cut(string(out), "\n")
	var v [3]int
	if _, err := fmt.Sscanf(first, "runc version %d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return Check{Name: name, Status: Warn, Detail: fmt.Sprintf("%s is %q, with which the server was not tried", found, first), Fix: fix}
	}
	detail := fmt.Sprintf("%d.%d.%d at %s", v[0], v[1], v[2], found)
	switch {
	case older(v, [3]int{1, 1, 5}):
		return Check{Name: name, Status: Fail, Detail: detail + " is too old", Fix: "install runc of at least 1.1.5, better 1.2"}
	case older(v, [3]int{1, 2, 0}):
		// It can do all that the server needs, so there is nothing to fix.
		return ok(name, "%s; bind mounts cannot be id-mapped before 1.2", detail)
	}
	return ok(name, "%s", detail)
}

func older(v, than [3]int) bool {
	for i := range v {
		if v[i] != than[i] {
			return v[i] < than[i]
		}
	}
	return false
}

func mmdebstrap() Check {
	path, err := exec.LookPath("mmdebstrap")
	if err != nil {
		return Check{Name: "mmdebstrap", Status: Warn, Detail: "not installed; the default image cannot be built here, only imported or pulled",
			Fix: "apt-get install mmdebstrap"}
	}
	return ok("mmdebstrap", "%s", path)
}

// containerd tries whether something listens on the socket.
func containerd(ctx context.Context, address string) Check {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", address)
	if err != nil {
		return Check{Name: "containerd", Status: Fail, Detail: err.Error(),
			Fix: `start that containerd, or set containerd.address = "" to use the one that is built in`}
	}
	conn.Close()
	return ok("containerd", "listens on %s", address)
}

func (o Options) image(ctx context.Context) Check {
	const name = "image"
	if o.HasImage == nil {
		return Check{Name: name, Status: Warn, Detail: "the store cannot be looked at, so " + o.Image + " was not looked for"}
	}
	found, err := o.HasImage(ctx, o.Image)
	switch {
	case err != nil:
		return Check{Name: name, Status: Fail, Detail: err.Error()}
	case !found:
		return Check{Name: name, Status: Warn, Detail: o.Image + " is not in the store", Fix: o.ImageFix}
	}
	return ok(name, "%s", o.Image)
}
