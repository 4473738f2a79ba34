package noise

import (
	"crypto/ecdh"
	"crypto/mlkem"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Suite is how the JSON form of a key names what it is for.
const Suite = "Noise_hybridIK_X25519+MLKEM768_AESGCM_SHA256"

const (
	dhSize  = 32
	kemSize = mlkem.EncapsulationKeySize768
	ctSize  = mlkem.CiphertextSize768
	tagSize = 16
)

// KeyPair is a static or an ephemeral pair of private keys. It has no other form:
// it is never stored.
type KeyPair struct {
	dh     *ecdh.PrivateKey
	kem    *mlkem.DecapsulationKey768
	public PublicKey
}

// GenerateKeyPair makes a key pair.
func GenerateKeyPair() (*KeyPair, error) {
	dh, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make an X25519 key: %w", err)
	}
	kem, err := mlkem.GenerateKey768()
	if err != nil {
		return nil, fmt.Errorf("make an ML-KEM-768 key: %w", err)
	}
	return newKeyPair(dh, kem), nil
}

func newKeyPair(dh *ecdh.PrivateKey, kem *mlkem.DecapsulationKey768) *KeyPair {
	return &KeyPair{dh, kem, PublicKey{dh.PublicKey().Bytes(), kem.EncapsulationKey().Bytes()}}
}

// Public returns what others may know of the pair.
func (k *KeyPair) Public() PublicKey { return k.public }

// PublicKey is the public half of a KeyPair. Its parts have the right lengths
// when it comes from this package, and may be no valid keys all the same.
type PublicKey struct {
	X25519   []byte
	MLKEM768 []byte
}

type publicKeyJSON struct {
	Suite    string `json:"suite"`
	X25519   string `json:"x25519_public_key"`
	MLKEM768 string `json:"mlkem768_public_key"`
}

// MarshalJSON implements json.Marshaler.
func (p PublicKey) MarshalJSON() ([]byte, error) {
	return json.Marshal(publicKeyJSON{
		Suite, base64.StdEncoding.EncodeToString(p.X25519), base64.StdEncoding.EncodeToString(p.MLKEM768),
	})
}

// UnmarshalJSON implements json.Unmarshaler. It refuses other suites, keys of the
// wrong length, and fields that it does not know.
func (p *PublicKey) UnmarshalJSON(text []byte) error {
	var j publicKeyJSON
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		return fmt.Errorf("public key: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("public key: something follows it")
	}
	if j.Suite != Suite {
		return fmt.Errorf("public key: the suite is not %s", Suite)
	}
	var err error
	if p.X25519, err = decodeKey(j.X25519, dhSize); err != nil {
		return fmt.Errorf("public key: X25519: %w", err)
	}
	if p.MLKEM768, err = decodeKey(j.MLKEM768, kemSize); err != nil {
		return fmt.Errorf("public key: ML-KEM-768: %w", err)
	}
	return nil
}

func decodeKey(text string, size int) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("it is not base64")
	}
	if len(key) != size {
		return nil, fmt.Errorf("it has %d bytes, not %d", len(key), size)
	}
	return key, nil
}
