package noise

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// handshake plays both sides. change may alter the two messages on their way.
func handshake(t *testing.T, change func(n int, message []byte) []byte) (harness, executor *Channel, err error) {
	t.Helper()
	h, x := generate(t), generate(t)
	prologue := Prologue("env", "registration", "stream")
	i, first, err := Initiate(h, x.Public(), prologue, []byte("authorization"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := ReadInitiation(x, prologue, change(1, first))
	if err != nil {
		return nil, nil, err
	}
	if string(r.Payload) != "authorization" || !bytes.Equal(r.Peer.MLKEM768, h.public.MLKEM768) || !bytes.Equal(r.Peer.X25519, h.public.X25519) {
		t.Errorf("the first message says %q", r.Payload)
	}
	second, executor, err := r.Answer([]byte("welcome"))
	if err != nil {
		t.Fatal(err)
	}
	payload, harness, err := i.Finish(change(2, second))
	if err == nil && string(payload) != "welcome" {
		t.Errorf("the second message says %q", payload)
	}
	return harness, executor, err
}

func generate(t *testing.T) *KeyPair {
	t.Helper()
	k, err := GenerateKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func asItIs(_ int, message []byte) []byte { return message }

func TestBothSidesUnderstandEachOther(t *testing.T) {
	harness, executor, err := handshake(t, asItIs)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 5, 61440, MaxMessage - Overhead} {
		text := bytes.Repeat([]byte{7}, size)
		for _, way := range [][2]*Channel{{harness, executor}, {executor, harness}} {
			record, err := way[0].Seal([]byte("before"), text)
			if err != nil || len(record) != 6+size+Overhead {
				t.Fatalf("%d bytes become %d, %v", size, len(record), err)
			}
			got, err := way[1].Open(record[6:6], record[6:])
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	}
	if _, err := harness.Seal(nil, make([]byte, MaxMessage-Overhead+1)); err == nil {
		t.Error("a record is larger than the largest")
	}
}

func TestRecordsHaveAnOrder(t *testing.T) {
	harness, executor, err := handshake(t, asItIs)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := harness.Seal(nil, []byte("1"))
	second, _ := harness.Seal(nil, []byte("2"))
	if _, err := executor.Open(nil, second); err == nil {
		t.Error("the second record is read first")
	}
	if _, err := executor.Open(nil, first); err == nil {
		t.Error("something is read after an error")
	}
}

// Every byte of both messages counts: the two may differ in length from one
// handshake to the next by their payloads only.
func TestAChangedMessageEndsTheHandshake(t *testing.T) {
	for n, size := range []int{1: overhead1, 2: overhead2} {
		for at := 0; at < size; at += 97 {
			_, _, err := handshake(t, func(k int, message []byte) []byte {
				if k == n {
					message[at] ^= 1
				}
				return message
			})
			if err == nil {
				t.Errorf("byte %d of message %d does not matter", at, n)
			}
		}
	}
	for n := range 3 {
		for _, change := range []func([]byte) []byte{
			func(m []byte) []byte { return nil },
			func(m []byte) []byte { return m[:len(m)-1] },
			func(m []byte) []byte { return append(m, 0) },
			func(m []byte) []byte { return append(m, make([]byte, MaxMessage)...) },
		} {
			_, _, err := handshake(t, func(k int, message []byte) []byte {
				if k == n {
					return change(message)
				}
				return message
			})
			if (err == nil) != (n == 0) {
				t.Errorf("message %d with another length: %v", n, err)
			}
		}
	}
}

func TestAHandshakeBelongsToItsPlace(t *testing.T) {
	h, x := generate(t), generate(t)
	_, message, err := Initiate(h, x.Public(), Prologue("e", "r", "s"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range [][]byte{Prologue("e", "r", "t"), Prologue("e", "q", "s"), Prologue("f", "r", "s"), Prologue("er", "", "s")} {
		if _, err := ReadInitiation(x, p, message); err == nil {
			t.Errorf("it is read at %q", p)
		}
	}
	if _, err := ReadInitiation(h, Prologue("e", "r", "s"), message); err == nil {
		t.Error("it is read by another executor")
	}
}

func TestPublicKeysInJSON(t *testing.T) {
	k := generate(t).Public()
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	var got PublicKey
	if err := json.Unmarshal(text, &got); err != nil || !bytes.Equal(got.X25519, k.X25519) || !bytes.Equal(got.MLKEM768, k.MLKEM768) {
		t.Errorf("there and back: %v", err)
	}
	for _, change := range [][2]string{
		{Suite, protocol}, {`"suite"`, `"more":1,"suite"`}, {`"x25519_public_key":"`, `"x25519_public_key":"A`},
		{`"x25519_public_key":"`, `"x25519_public_key":"AAAA`}, {`"mlkem768_public_key"`, `"mlkem768"`},
	} {
		if err := json.Unmarshal([]byte(strings.Replace(string(text), change[0], change[1], 1)), &got); err == nil {
			t.Errorf("with %s for %s it is a key still", change[1], change[0])
		}
	}
}

// Keys that are no keys: a point of low order, and coefficients out of range.
func TestKeysThatAreNone(t *testing.T) {
	h, x := generate(t), generate(t).Public()
	if _, _, err := Initiate(h, PublicKey{make([]byte, dhSize), x.MLKEM768}, nil, nil); err == nil {
		t.Error("an X25519 key of zeros is one")
	}
	if _, _, err := Initiate(h, PublicKey{x.X25519, bytes.Repeat([]byte{255}, kemSize)}, nil, nil); err == nil {
		t.Error("an ML-KEM key of ones is one")
	}
}

func FuzzReadInitiation(f *testing.F) {
	h, _ := GenerateKeyPair()
	x, _ := GenerateKeyPair()
	_, message, err := Initiate(h, x.Public(), []byte("p"), []byte("payload"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(message)
	f.Fuzz(func(t *testing.T, message []byte) {
		if r, err := ReadInitiation(x, []byte("p"), message); err == nil && string(r.Payload) != "payload" {
			t.Errorf("a message was forged: %q", r.Payload)
		}
	})
}

func FuzzPublicKey(f *testing.F) {
	k, _ := GenerateKeyPair()
	text, _ := json.Marshal(k.Public())
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var p PublicKey
		if json.Unmarshal(text, &p) == nil && (len(p.X25519) != dhSize || len(p.MLKEM768) != kemSize) {
			t.Errorf("keys of %d and %d bytes", len(p.X25519), len(p.MLKEM768))
		}
	})
}
