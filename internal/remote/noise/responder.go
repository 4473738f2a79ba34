package noise

import "fmt"

// Responder is the executor's side of a handshake whose first message it has read.
type Responder struct {
	// Peer is the harness's static key: it has proved that it has the private one.
	Peer PublicKey
	// Payload is what came with the message.
	Payload []byte

	s         *symmetric
	ephemeral PublicKey // the harness's
	chance    chance
}

// ReadInitiation reads a harness's first message. An error says that it was not
// meant for this key and prologue, was changed, or is malformed.
func ReadInitiation(static *KeyPair, prologue, message []byte) (*Responder, error) {
	if err := checkLength(message, overhead1); err != nil {
		return nil, err
	}
	s := newSymmetric(prologue, static.public)
	rest := cutter(message)
	ciphertext, err := s.open(rest.next(ctSize)) // no key is set yet
	if err != nil {
		return nil, err
	}
	shared, err := static.kem.Decapsulate(ciphertext)
	if err != nil {
		return nil, fmt.Errorf("noise: %w", err)
	}
	s.mixKeyAndHash(shared)
	r := &Responder{s: s, chance: fairChance}
	r.ephemeral = PublicKey{clone(rest.next(dhSize)), clone(rest.next(kemSize))}
	s.mixHash(r.ephemeral.X25519)
	s.mixHash(r.ephemeral.MLKEM768)
	if err := s.mixDH(static.dh, r.ephemeral.X25519); err != nil { // es
		return nil, err
	}
	if r.Peer.X25519, err = s.open(rest.next(dhSize + tagSize)); err != nil {
		return nil, err
	}
	if r.Peer.MLKEM768, err = s.open(rest.next(kemSize + tagSize)); err != nil {
		return nil, err
	}
	if err := s.mixDH(static.dh, r.Peer.X25519); err != nil { // ss
		return nil, err
	}
	if r.Payload, err = s.open(rest); err != nil {
		return nil, err
	}
	return r, nil
}

// Answer makes the second message, which ends the handshake. It may be called
// once.
func (r *Responder) Answer(payload []byte) (message []byte, c *Channel, err error) {
	e, err := r.chance.ephemeral()
	if err != nil {
		return nil, nil, err
	}
	s := r.s
	shared, ciphertext, err := r.chance.encapsulateTo(r.ephemeral.MLKEM768) // ekem
	if err != nil {
		return nil, nil, err
	}
	s.mixHash(ciphertext)
	s.mixKey(shared)
	message = append(make([]byte, 0, overhead2+len(payload)), ciphertext...)
	shared, ciphertext, err = r.chance.encapsulateTo(r.Peer.MLKEM768) // skem
	if err != nil {
		return nil, nil, err
	}
	message = s.seal(message, ciphertext)
	s.mixKeyAndHash(shared)
	message = s.mixPublic(message, e.public)
	for _, theirs := range [][]byte{r.ephemeral.X25519, r.Peer.X25519} { // ee, se
		if err := s.mixDH(e.dh, theirs); err != nil {
			return nil, nil, err
		}
	}
	message = s.seal(message, payload)
	return message, s.split(false), checkLength(message, overhead2)
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }
