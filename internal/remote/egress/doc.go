// Package egress is the way out of a daemon that dials: the HTTP client of the
// registry's calls and the dialer of WebSockets. Both go through the proxy that
// the options or the process's environment name, and trust the certificates of
// the system with those of a file. Passwords of proxies are in no error.
package egress
