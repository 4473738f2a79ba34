package noise

import (
	"crypto/cipher"
	"errors"
	"math"
)

// Channel is an established connection. Records are numbered from 0 in each
// direction and have to be opened in the order in which they were sealed. One
// goroutine may seal while another opens.
type Channel struct {
	send, receive   cipher.AEAD
	sent, received  uint64
	sendN, receiveN [12]byte
}

var errExhausted = errors.New("noise: the record numbers of the connection are used up")

// Seal appends the next record, of Overhead bytes more than the plaintext, to dst.
func (c *Channel) Seal(dst, plaintext []byte) ([]byte, error) {
	if len(plaintext) > MaxMessage-Overhead {
		return nil, errors.New("noise: the record is too large")
	}
	if c.sent == math.MaxUint64 {
		return nil, errExhausted
	}
	dst = c.send.Seal(dst, putNonce(&c.sendN, c.sent), plaintext, nil)
	c.sent++
	return dst, nil
}

// Open appends the plaintext of the next record to dst. dst may be record[:0].
// After an error nothing more can be opened.
func (c *Channel) Open(dst, record []byte) ([]byte, error) {
	if len(record) > MaxMessage {
		return nil, errors.New("noise: the record is too large")
	}
	if c.received == math.MaxUint64 {
		return nil, errExhausted
	}
	dst, err := c.receive.Open(dst, putNonce(&c.receiveN, c.received), record, nil)
	if err != nil {
		c.received = math.MaxUint64
		return nil, errors.New("noise: a record was changed, or is out of order")
	}
	c.received++
	return dst, nil
}
