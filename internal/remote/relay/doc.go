// Package relay is the executor's end of a rendezvous socket: many encrypted
// streams over one WebSocket, each a connection from a harness. The rendezvous in
// between forwards frames and is trusted with nothing: it can lose a stream, and
// neither read nor change one.
//
// A frame is a protobuf message, one in each binary WebSocket message. A stream is
// opened by a handshake (package noise), for which the registry vouches. After it,
// data frames carry numbered records, and in the records runs a stream of messages
// behind their lengths, which know nothing of the records' borders.
//
// Nothing is repaired on the way: a record that was lost is waited for, until the
// harness gives the stream up and comes back on another, and resumes its session.
package relay
