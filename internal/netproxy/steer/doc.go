// Package steer has the connections that programs make in a network namespace with
// nothing but a loopback lead to sockets in it, whatever address they are for, and
// all questions about names to one server. It works on the namespace of the calling
// thread, which needs the right to administer it.
package steer
