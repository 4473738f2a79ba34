// Package doctor finds out whether this machine can run the server. It tries
// for real what can be tried: it makes a user namespace, an overlay mount and so
// on, in ways that leave nothing behind.
package doctor

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
)

// Status is how a check came out.
type Status string

// Warn is for what the server can do without, Fail for what it cannot.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Check is one thing that was looked at.
type Check struct {
	Name   string
	Status Status
	// Detail says what was found, in one line.
	Detail string
	// Fix says what to do about it, in one line; "" if there is nothing to do.
	Fix string
}

// Options say what to look at.
type Options struct {
	// Root is the directory of what the server keeps. It need not exist.
	Root string
	// State is the directory of its sockets; "" is not looked at.
	State string
	// RuncPath is the OCI runtime; "" finds runc in PATH.
	RuncPath string
	// ContainerdAddress is the socket of a containerd that the server is to use;
	// "" if it uses its own.
	ContainerdAddress string
	// Image is the image that sandboxes are made from by default; "" is not
	// looked for.
	Image string
	// HasImage says whether the store has an image. Nil if the store cannot be
	// looked at.
	HasImage func(ctx context.Context, name string) (bool, error)
	// ImageFix is the command that makes the image.
	ImageFix string

	// sys is put before /proc and /sys, for tests.
	sys string
}

// Run makes all checks. They take about a tenth of a second together.
func Run(ctx context.Context, o Options) []Check {
	checks := []Check{
		kernel(), superuser(), o.cgroups(), o.userNamespaces(), o.idMappedMounts(), o.overlay(), seccomp(),
		confinement(), network(), runc(ctx, o.RuncPath), mmdebstrap(), disk(o.Root), inodes(o.Root),
		clock(), timeSync(),
	}
	if o.State != "" {
		checks = append(checks, sockets(o.State))
	}
	if o.ContainerdAddress != "" {
		checks = append(checks, containerd(ctx, o.ContainerdAddress))
	}
	if o.Image != "" {
		checks = append(checks, o.image(ctx))
	}
	return checks
}

// Print writes the checks as a table and returns the exit status: 1 if one of
// them failed, else 0.
func Print(w io.Writer, checks []Check) (int, error) {
	status := 0
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		if c.Status == Fail {
			status = 1
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.Status, c.Name, c.Detail)
		if c.Fix != "" {
			fmt.Fprintf(table, "\t\t-> %s\n", c.Fix)
		}
	}
	return status, table.Flush()
}

func ok(name, format string, args ...any) Check {
	return Check{Name: name, Status: OK, Detail: fmt.Sprintf(format, args...)}
}

// existing is dir or its nearest parent that exists, and is so on the file
// system that dir will be on.
func existing(dir string) string {
	for dir = filepath.Clean(dir); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			break
		}
	}
	return dir
}

// needsRoot is the end of a check that only root can make.
func needsRoot(name string) Check {
	return Check{Name: name, Status: Fail, Detail: "cannot be tried by a user other than root", Fix: "run it as root"}
}
