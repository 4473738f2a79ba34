// Package remotetest is the other side of package remote, for tests: the registry,
// the rendezvous and the harnesses, in this process and on the loopback address.
//
// A Peer takes registrations for any number of environments and the sockets of
// their executors. Open makes a harness's connection through such a socket, end to
// end. What arrives is kept for the test to look at, and Faults say what goes wrong;
// they may be changed at any time. Below Open, Claim gives a stream as bare frames,
// for a test that plays a harness of ill will.
package remotetest
