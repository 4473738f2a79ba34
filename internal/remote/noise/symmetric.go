package noise

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// protocol is what is hashed first. The JSON form of keys has another name for
// the same suite.
const protocol = "Noise_hybridIK_25519+MLKEM768_AESGCM_SHA256"

var errDecrypt = errors.New("noise: a message was not meant for this handshake, or was changed")

// symmetric is the state that both sides grow alike during a handshake: the hash
// of all that has passed, the chaining key, and the key of the moment.
type symmetric struct {
	h, ck []byte
	aead  cipher.AEAD // nil before the first mixKey
	n     uint64
}

func newSymmetric(prologue []byte, responder PublicKey) *symmetric {
	h := sha256.Sum256([]byte(protocol))
	s := &symmetric{h: h[:], ck: h[:]}
	s.mixHash(prologue)
	s.mixHash(responder.X25519)
	s.mixHash(responder.MLKEM768)
	return s
}

func (s *symmetric) mixHash(data []byte) {
	x := sha256.New()
	x.Write(s.h)
	x.Write(data)
	s.h = x.Sum(nil)
}

// derive is Noise's HKDF with n outputs of 32 bytes.
func (s *symmetric) derive(secret []byte, n int) [][]byte {
	all, err := hkdf.Key(sha256.New, secret, s.ck, "", 32*n)
	if err != nil {
		panic("noise: " + err.Error()) // only for lengths that are never asked for
	}
	out := make([][]byte, n)
	for i := range out {
		out[i] = all[32*i : 32*i+32 : 32*i+32]
	}
	return out
}

func (s *symmetric) mixKey(secret []byte) {
	out := s.derive(secret, 2)
	s.ck, s.aead, s.n = out[0], newAEAD(out[1]), 0
}

func (s *symmetric) mixKeyAndHash(secret []byte) {
	out := s.derive(secret, 3)
	s.ck, s.aead, s.n = out[0], newAEAD(out[2]), 0
	s.mixHash(out[1])
}

// seal appends the encrypted plaintext; before the first key that is itself.
func (s *symmetric) seal(dst, plaintext []byte) []byte {
	start := len(dst)
	if s.aead == nil {
		dst = append(dst, plaintext...)
	} else {
		var nonce [12]byte
		dst = s.aead.Seal(dst, putNonce(&nonce, s.n), plaintext, s.h)
		s.n++
	}
	s.mixHash(dst[start:])
	return dst
}

func (s *symmetric) open(ciphertext []byte) ([]byte, error) {
	out := ciphertext
	if s.aead != nil {
		var nonce [12]byte
		var err error
		if out, err = s.aead.Open(nil, putNonce(&nonce, s.n), ciphertext, s.h); err != nil {
			return nil, errDecrypt
		}
		s.n++
	}
	s.mixHash(ciphertext)
	return out, nil
}

// split ends the handshake.
func (s *symmetric) split(initiator bool) *Channel {
	out := s.derive(nil, 2)
	c := &Channel{send: newAEAD(out[0]), receive: newAEAD(out[1])}
	if !initiator {
		c.send, c.receive = c.receive, c.send
	}
	return c
}

func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("noise: " + err.Error()) // keys are 32 bytes
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic("noise: " + err.Error())
	}
	return aead
}

func putNonce(nonce *[12]byte, n uint64) []byte {
	binary.BigEndian.PutUint64(nonce[4:], n)
	return nonce[:]
}
