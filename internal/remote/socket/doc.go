// Package socket is the client's end of a WebSocket that is dialled outward.
// Reading is a library's. Frames are written past it, whole and from where they
// lie, so that one system call sends many, and pings are as the protocol has them.
package socket
