package proto

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
)

// DecodeBase64 decodes standard base64 with padding, strictly.
func DecodeBase64(text []byte) ([]byte, error) {
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(out, text)
	// The library would skip line ends.
	if err == nil && bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return out[:n], nil
	}
	return nil, base64Error(text)
}

// base64Error says in the reference's words what is wrong with the text.
func base64Error(text []byte) error {
	for i, c := range text {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '+' && c != '/' && c != '=' {
			return fmt.Errorf("Invalid symbol %d, offset %d.", c, i) //nolint:staticcheck // the reference's words
		}
	}
	if _, err := base64.StdEncoding.DecodeString(string(text)); err == nil { // but for bits behind the last byte
		last := len(bytes.TrimRight(text, "=")) - 1
		return fmt.Errorf("Invalid last symbol %d, offset %d.", text[last], last) //nolint:staticcheck // the same
	}
	return errors.New("Invalid padding") //nolint:staticcheck // the same
}
