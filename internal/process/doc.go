// Package process runs commands: it spawns them on pipes or a terminal, numbers
// and keeps their output, feeds their standard input, and reports their end.
//
// One goroutine owns each running command. It waits in blocking system calls,
// so that it is one OS thread while the command runs; that is what keeps a short
// command within a few microseconds of a bare fork and exec.
package process
