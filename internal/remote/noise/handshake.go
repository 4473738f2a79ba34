package noise

import (
	"crypto/ecdh"
	"crypto/mlkem"
	"encoding/binary"
	"fmt"
)

const prologueTag = "codex-exec-server-relay-noise/v1"

// Prologue binds a handshake to where it takes place: nobody can have a message of
// one stream answered on another.
func Prologue(environmentID, registrationID, streamID string) []byte {
	var b []byte
	for _, part := range []string{prologueTag, environmentID, registrationID, streamID} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// What handshake messages have beside their payloads, in bytes.
const (
	overhead1 = ctSize + dhSize + kemSize + dhSize + tagSize + kemSize + tagSize + tagSize
	overhead2 = ctSize + ctSize + tagSize + dhSize + kemSize + tagSize
)

// chance is what one side draws during a handshake. Tests exchange it.
type chance struct {
	ephemeral   func() (*KeyPair, error)
	encapsulate func(*mlkem.EncapsulationKey768) (shared, ciphertext []byte)
}

var fairChance = chance{GenerateKeyPair, (*mlkem.EncapsulationKey768).Encapsulate}

// encapsulateTo makes a secret for the owner of a key that came from outside.
func (c chance) encapsulateTo(key []byte) (shared, ciphertext []byte, err error) {
	k, err := mlkem.NewEncapsulationKey768(key)
	if err != nil {
		return nil, nil, fmt.Errorf("noise: ML-KEM key: %w", err)
	}
	shared, ciphertext = c.encapsulate(k)
	return shared, ciphertext, nil
}

// mixDH mixes what two X25519 keys have in common. Keys of low order are refused.
func (s *symmetric) mixDH(own *ecdh.PrivateKey, theirs []byte) error {
	key, err := ecdh.X25519().NewPublicKey(theirs)
	if err != nil {
		return fmt.Errorf("noise: X25519 key: %w", err)
	}
	shared, err := own.ECDH(key)
	if err != nil {
		return fmt.Errorf("noise: X25519 key: %w", err)
	}
	s.mixKey(shared)
	return nil
}

// mixPublic is the token e of one's own: both keys, in the clear.
func (s *symmetric) mixPublic(dst []byte, key PublicKey) []byte {
	s.mixHash(key.X25519)
	s.mixHash(key.MLKEM768)
	return append(append(dst, key.X25519...), key.MLKEM768...)
}

// cutter takes a message apart whose length has been checked.
type cutter []byte

func (c *cutter) next(n int) []byte {
	part := (*c)[:n:n]
	*c = (*c)[n:]
	return part
}

func checkLength(message []byte, overhead int) error {
	if len(message) < overhead || len(message) > MaxMessage {
		return fmt.Errorf("noise: a handshake message of %d bytes", len(message))
	}
	return nil
}
