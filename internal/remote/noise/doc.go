// Package noise is the end-to-end encryption between a harness and an executor
// that meet at a rendezvous: the Noise pattern IK, hybridized, so that X25519 and
// ML-KEM-768 both have to be broken to read along.
//
//	<- s
//	...
//	-> skem, e, es, s, ss, payload    the harness, which starts
//	<- ekem, skem, e, ee, se, payload the executor
//
// Each e and s is a pair, an X25519 key and an ML-KEM key. skem is encapsulated to
// the other side's static ML-KEM key, ekem to the harness's ephemeral one. The
// cipher is AES-256-GCM, the hash SHA-256.
package noise

// MaxMessage is the largest handshake message or record, in bytes.
const MaxMessage = 65535

// Overhead is what Channel.Seal adds to a plaintext, in bytes.
const Overhead = tagSize
