// Package remote keeps environments reachable without listening: it registers each
// with a registry, dials where that says, and serves the connections of harnesses
// that come along the socket. Nothing it meets makes it give up: what cannot be
// reached is tried again, and what is refused is tried again slowly.
package remote
