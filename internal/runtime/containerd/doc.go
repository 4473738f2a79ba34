// Package containerd runs environments as containers.
//
// The server embeds containerd as a library: [Start] brings up its services in
// this process with a store, a state directory and a socket of their own, so
// that no other containerd on the machine is needed or touched. [Connect] uses
// an existing containerd instead. Either way [New] makes the runtime.Runtime.
//
// A process that may embed containerd must call [ShimMain] first thing in main:
// containerd starts its shims, one small process per container, from a link to
// the program's own binary.
//
// Everything that comes out of a container is untrusted: its socket is opened
// without following links and its peer is checked, its log is bounded, and the
// files that it shares with the host lie on a file system of their own with a
// size limit.
//
// The mount namespace of the daemon must be the one that the next daemon gets:
// mounts of running sandboxes live in it. A service manager must not give the
// daemon a private one (PrivateTmp, ProtectSystem and the like in systemd).
package containerd
