// Package agent is the protocol server: connections, sessions and the dispatch
// of requests to the packages that do the work. It runs as init inside every
// sandbox, and in the daemon itself with --runtime host.
package agent
