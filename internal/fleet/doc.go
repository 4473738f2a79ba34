// Package fleet has the environments of a daemon that are reached through a
// registry: one link for each, with a goroutine, a credential, a key and sockets of
// its own, so that what happens to one is nothing to the others. Those that are
// added while the daemon runs are written down, for the next daemon of the root.
package fleet
