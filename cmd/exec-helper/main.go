// Command exec-helper decodes for the agent what comes from foreign parties. The
// agent starts it as the user of commands, with one end of a socket as descriptor
// 3, and an argument that says what it is for.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/helper"
)

// modes are what the helper can do. A mode may be given further descriptors,
// from 4 up: see agent.Server.startHelper.
var modes = map[string]func() error{
	"http":     func() error { return helper.Serve(helper.HTTP()) },
	"config":   func() error { return helper.Serve(helper.Config) },
	"discover": func() error { return helper.Serve(helper.Discover) },
	"masking":  func() error { return helper.Serve(mask) },
	"proxy":    serveProxy,
}

// maxStack bounds, in bytes, how deep a document can make a decoder recurse: the
// program ends, and its request with it.
const maxStack = 64 << 20

// The program is executed by a descriptor, whose number would be its name in ps.
// This runs on the first thread, which the name is that of.
func init() {
	if name, err := unix.BytePtrFromString("exec-helper"); err == nil {
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(name)), 0, 0, 0)
	}
}

func main() {
	var run func() error
	if len(os.Args) == 2 {
		run = modes[os.Args[1]]
	}
	if run == nil {
		fmt.Fprintln(os.Stderr, "exec-helper: this program is for exec-server to start")
		os.Exit(2)
	}
	debug.SetMaxStack(maxStack)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "exec-helper:", err)
		os.Exit(1)
	}
}
