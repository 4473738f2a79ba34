package noise

import (
	"bytes"
	"crypto/ecdh"
	"crypto/mlkem"
	"crypto/mlkem/mlkemtest"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// hexBytes is a byte string that is hexadecimal in JSON.
type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

type secrets struct {
	EphemeralSeed  hexBytes `json:"ephemeral_mlkem768_seed"`
	EphemeralDH    hexBytes `json:"ephemeral_x25519_private"`
	EkemM          hexBytes `json:"ekem_encapsulation_m"`
	SkemM          hexBytes `json:"skem_encapsulation_m"`
	StaticSeed     hexBytes `json:"static_mlkem768_seed"`
	StaticDH       hexBytes `json:"static_x25519_private"`
	StaticKEM      hexBytes `json:"static_mlkem768_public"`
	StaticDHPublic hexBytes `json:"static_x25519_public"`
}

type vector struct {
	Name           string
	EnvironmentID  string   `json:"environment_id"`
	RegistrationID string   `json:"executor_registration_id"`
	StreamID       string   `json:"stream_id"`
	Prologue       hexBytes `json:"prologue"`
	Initiator      secrets
	Responder      secrets
	Message1       hexBytes `json:"message1"`
	Payload1       string   `json:"message1_payload"`
	Message2       hexBytes `json:"message2"`
	Payload2       string   `json:"message2_payload"`
	Records        []struct {
		From                  string
		Nonce                 uint64
		Plaintext, Ciphertext hexBytes
	}
}

func pair(t *testing.T, dh, seed []byte) *KeyPair {
	t.Helper()
	d, err := ecdh.X25519().NewPrivateKey(dh)
	if err != nil {
		t.Fatal(err)
	}
	k, err := mlkem.NewDecapsulationKey768(seed)
	if err != nil {
		t.Fatal(err)
	}
	return newKeyPair(d, k)
}

// fixed draws what a vector says.
func fixed(t *testing.T, s secrets) chance {
	draws := [][]byte{s.EkemM, s.SkemM}
	if s.EkemM == nil {
		draws = draws[1:]
	}
	return chance{
		func() (*KeyPair, error) { return pair(t, s.EphemeralDH, s.EphemeralSeed), nil },
		func(k *mlkem.EncapsulationKey768) (shared, ciphertext []byte) {
			shared, ciphertext, err := mlkemtest.Encapsulate768(k, draws[0])
			if err != nil {
				t.Fatal(err)
			}
			draws = draws[1:]
			return shared, ciphertext
		},
	}
}

// TestVectors checks the handshakes that EXEC_SERVER_NOISE_VECTORS names, a file
// of secrets and of the messages that other implementations make with them.
func TestVectors(t *testing.T) {
	path := os.Getenv("EXEC_SERVER_NOISE_VECTORS")
	if path == "" {
		t.Skip("EXEC_SERVER_NOISE_VECTORS names no file")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) == 0 {
		t.Fatal("the file has no vectors")
	}
	for _, v := range file.Vectors {
		t.Run(v.Name, func(t *testing.T) { v.check(t) })
	}
}

func (v vector) check(t *testing.T) {
	prologue := Prologue(v.EnvironmentID, v.RegistrationID, v.StreamID)
	if !bytes.Equal(prologue, v.Prologue) {
		t.Errorf("the prologue is %x", prologue)
	}
	responder := PublicKey{v.Responder.StaticDHPublic, v.Responder.StaticKEM}
	var toInitiator, toResponder *Channel
	if v.Responder.StaticSeed != nil {
		toInitiator = v.checkResponder(t, prologue, responder)
	}
	if v.Initiator.EphemeralSeed != nil {
		static := pair(t, v.Initiator.StaticDH, v.Initiator.StaticSeed)
		i, message, err := initiate(static, responder, prologue, []byte(v.Payload1), fixed(t, v.Initiator))
		if err != nil || !bytes.Equal(message, v.Message1) {
			t.Fatalf("the first message is another: %v", err)
		}
		payload, c, err := i.Finish(v.Message2)
		if err != nil || string(payload) != v.Payload2 {
			t.Fatalf("the second message says %q, %v", payload, err)
		}
		toResponder = c
	}
	if toInitiator == nil && toResponder == nil {
		t.Fatal("the vector has the secrets of nobody")
	}
	for _, record := range v.Records {
		sender, receiver := toInitiator, toResponder
		if record.From == "initiator" {
			sender, receiver = toResponder, toInitiator
		}
		if sender != nil {
			if got, err := sender.Seal(nil, record.Plaintext); err != nil || !bytes.Equal(got, record.Ciphertext) {
				t.Errorf("record %d of the %s is another: %v", record.Nonce, record.From, err)
			}
		}
		if receiver != nil {
			if got, err := receiver.Open(nil, record.Ciphertext); err != nil || !bytes.Equal(got, record.Plaintext) {
				t.Errorf("record %d of the %s says %q, %v", record.Nonce, record.From, got, err)
			}
		}
	}
}

// checkResponder plays the responder, and returns nil if it cannot end the
// handshake as the vector does.
func (v vector) checkResponder(t *testing.T, prologue []byte, public PublicKey) *Channel {
	static := pair(t, v.Responder.StaticDH, v.Responder.StaticSeed)
	if !bytes.Equal(static.public.MLKEM768, public.MLKEM768) || !bytes.Equal(static.public.X25519, public.X25519) {
		t.Error("the responder's public key is another")
	}
	r, err := ReadInitiation(static, prologue, v.Message1)
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Payload) != v.Payload1 || !bytes.Equal(r.Peer.X25519, v.Initiator.StaticDHPublic) || !bytes.Equal(r.Peer.MLKEM768, v.Initiator.StaticKEM) {
		t.Errorf("the first message says %q, of another harness perhaps", r.Payload)
	}
	if v.Responder.EphemeralSeed == nil {
		return nil
	}
	r.chance = fixed(t, v.Responder)
	message, c, err := r.Answer([]byte(v.Payload2))
	if err != nil || !bytes.Equal(message, v.Message2) {
		t.Fatalf("the second message is another: %v", err)
	}
	return c
}
