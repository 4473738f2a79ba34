// Package transport turns what carries bytes into connections that carry whole
// messages: the WebSocket listener and standard input and output.
package transport
