package noise

import "fmt"

// Initiator is the harness's side of a handshake whose first message is on its
// way.
type Initiator struct {
	s                 *symmetric
	static, ephemeral *KeyPair
}

// Initiate makes the first message, to the owner of a static key.
func Initiate(static *KeyPair, peer PublicKey, prologue, payload []byte) (i *Initiator, message []byte, err error) {
	return initiate(static, peer, prologue, payload, fairChance)
}

func initiate(static *KeyPair, peer PublicKey, prologue, payload []byte, c chance) (i *Initiator, message []byte, err error) {
	e, err := c.ephemeral()
	if err != nil {
		return nil, nil, err
	}
	shared, ciphertext, err := c.encapsulateTo(peer.MLKEM768)
	if err != nil {
		return nil, nil, err
	}
	s := newSymmetric(prologue, peer)
	message = s.seal(make([]byte, 0, overhead1+len(payload)), ciphertext) // skem
	s.mixKeyAndHash(shared)
	message = s.mixPublic(message, e.public)
	if err := s.mixDH(e.dh, peer.X25519); err != nil { // es
		return nil, nil, err
	}
	message = s.seal(message, static.public.X25519)
	message = s.seal(message, static.public.MLKEM768)
	if err := s.mixDH(static.dh, peer.X25519); err != nil { // ss
		return nil, nil, err
	}
	message = s.seal(message, payload)
	return &Initiator{s, static, e}, message, checkLength(message, overhead1)
}

// Finish reads the second message and returns its payload. It may be called once.
func (i *Initiator) Finish(message []byte) (payload []byte, c *Channel, err error) {
	if err := checkLength(message, overhead2); err != nil {
		return nil, nil, err
	}
	s, rest := i.s, cutter(message)
	ciphertext := rest.next(ctSize) // ekem
	s.mixHash(ciphertext)
	shared, err := i.ephemeral.kem.Decapsulate(ciphertext)
	if err != nil {
		return nil, nil, fmt.Errorf("noise: %w", err)
	}
	s.mixKey(shared)
	if ciphertext, err = s.open(rest.next(ctSize + tagSize)); err != nil { // skem
		return nil, nil, err
	}
	if shared, err = i.static.kem.Decapsulate(ciphertext); err != nil {
		return nil, nil, fmt.Errorf("noise: %w", err)
	}
	s.mixKeyAndHash(shared)
	theirs := rest.next(dhSize)
	s.mixHash(theirs)
	s.mixHash(rest.next(kemSize))
	if err := s.mixDH(i.ephemeral.dh, theirs); err != nil { // ee
		return nil, nil, err
	}
	if err := s.mixDH(i.static.dh, theirs); err != nil { // se
		return nil, nil, err
	}
	if payload, err = s.open(rest); err != nil {
		return nil, nil, err
	}
	return payload, s.split(true), nil
}
