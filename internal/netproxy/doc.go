// Package netproxy is the network proxy that one command may have: HTTP with
// CONNECT, and SOCKS5. It decides about every host by the rules it was given,
// reports each decision, and asks where the rules leave a host open. It connects
// to the addresses that it decided about, never to a second look-up.
//
// It runs in a process of its own beside the command, so that the agent stays
// small and what the command sends is parsed away from it.
package netproxy
