// Package confine runs a command, or a piece of file work, under a permission
// profile: inside the sandbox that is there already, more tightly still.
//
// What a profile does not name is not there, what it names as readable is
// read-only, what it denies cannot be opened. A confined command has a mount, a
// PID and an IPC namespace of its own, without the network a network namespace
// too, a fresh /dev and /proc, no capabilities, no way to new privileges, and a
// system call filter.
//
// All of this is a property of threads. A goroutine locks its thread, confines
// it, starts the command from it, and ends with the thread; no helper program
// is executed for it. The namespaces that need a process of their own to hold
// them belong to an init of a few instructions, which is started ahead of time
// together with everything that does not depend on the profile: see cell.
//
// It fails closed. Paths are looked up without following links that could have
// been planted meanwhile, and any step that does not succeed ends in an error
// before the command runs.
package confine
