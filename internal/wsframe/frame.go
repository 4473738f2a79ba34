package wsframe

import (
	"encoding/binary"
	"math/rand/v2"
)

// Opcodes of frames.
const (
	Continuation = 0
	Text         = 1
	Binary       = 2
	Close        = 8
	Ping         = 9
	Pong         = 10
)

const (
	final = 0x80 // in the first byte
	mask  = 0x80 // in the second
)

// IsClose tells whether whole frames begin with a close frame.
func IsClose(frames []byte) bool { return len(frames) > 0 && frames[0] == final|Close }

// AppendHeader begins the one frame of a server's message of n bytes.
func AppendHeader(dst []byte, opcode byte, n int) []byte { return appendHeader(dst, opcode, 0, n) }

// AppendMasked appends a client's message, of one frame, to dst.
func AppendMasked(dst []byte, opcode byte, payload []byte) []byte {
	dst, key := BeginMasked(dst, opcode, len(payload))
	start := len(dst)
	dst = append(dst, payload...)
	key.Hide(dst[start:])
	return dst
}

// AppendMaskedPart appends a frame of a client's message. The first has the
// message's opcode, those that follow Continuation.
func AppendMaskedPart(dst []byte, opcode byte, part []byte, last bool) []byte {
	start := len(dst)
	if dst = AppendMasked(dst, opcode, part); !last {
		dst[start] &^= final
	}
	return dst
}

// BeginMasked begins the one frame of a client's message of n bytes. The payload
// has to be appended to what it returns, and then be hidden with the key.
func BeginMasked(dst []byte, opcode byte, n int) (begun []byte, key Key) {
	// The mask keeps what is sent from looking like HTTP to a proxy. It must not be
	// foreseen by who chooses the payload; the generator is seeded by the system.
	binary.LittleEndian.PutUint32(key[:], rand.Uint32())
	return append(appendHeader(dst, opcode, mask, n), key[:]...), key
}

func appendHeader(dst []byte, opcode, masked byte, n int) []byte {
	dst = append(dst, final|opcode)
	switch {
	case n < 126:
		return append(dst, masked|byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, masked|126), uint16(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, masked|127), uint64(n))
}

// Key hides a payload on its way, as a client has to.
type Key [4]byte

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
