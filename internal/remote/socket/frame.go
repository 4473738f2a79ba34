package socket

import (
	"encoding/binary"
	"math/rand/v2"
)

// Opcodes of frames.
const (
	Text   = 1
	Binary = 2
	ping   = 9
)

// HeaderSize is the most that is before a frame's payload, in bytes.
const HeaderSize = 14

// AppendFrame appends a whole message, of one frame, to dst.
func AppendFrame(dst []byte, opcode byte, payload []byte) []byte {
	dst, key := appendHeader(dst, opcode, len(payload))
	start := len(dst)
	dst = append(dst, payload...)
	key.Hide(dst[start:])
	return dst
}

// BeginFrame appends the header of a message of size bytes. The payload has to be
// appended to what it returns, and then be hidden with the key.
func BeginFrame(dst []byte, opcode byte, size int) (begun []byte, key Key) {
	return appendHeader(dst, opcode, size)
}

// Key hides a payload on its way, as a client has to.
type Key [4]byte

func appendHeader(dst []byte, opcode byte, n int) ([]byte, Key) {
	const final, masked = 0x80, 0x80
	dst = append(dst, final|opcode)
	switch {
	case n < 126:
		dst = append(dst, masked|byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, masked|126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, masked|127), uint64(n))
	}
	var key Key
	// The mask keeps what is sent from looking like HTTP to a proxy. It must not be
	// foreseen by who chooses the payload; the generator is seeded by the system.
	binary.LittleEndian.PutUint32(key[:], rand.Uint32())
	return append(dst, key[:]...), key
}

// Hide changes a payload in place. Done again, it shows it.
func (key Key) Hide(p []byte) {
	k32 := binary.LittleEndian.Uint32(key[:])
	k := uint64(k32)<<32 | uint64(k32)
	for len(p) >= 32 {
		for i := 0; i < 32; i += 8 {
			binary.LittleEndian.PutUint64(p[i:], binary.LittleEndian.Uint64(p[i:])^k)
		}
		p = p[32:]
	}
	for i := range p {
		p[i] ^= key[i&3]
	}
}
