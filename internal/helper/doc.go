// Package helper is the helper program's side of its socket to the agent. What
// foreign parties send to a sandbox - HTTP, YAML, TOML - is decoded there, in a
// process with no more rights than a command has, and not in the agent, which is
// init and root of the sandbox.
//
// The agent sends requests as frames of package proto: {"id", "method",
// "params"}. The helper answers each one with {"id", "result"} or {"id",
// "error"}, in any order, and may send notifications, which are the wire's own
// messages. It ends when the agent's end of the socket does.
package helper
