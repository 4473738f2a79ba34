// Package e2e has the tests that use the program as a user does: the built
// binary, its flags, its listener, real containers. It has no code of its own.
package e2e
