package credential

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxToken bounds a token, in bytes; with a line's end where it is a line. It is
// the reference's.
const maxToken = 16384

// Secret is a text that prints as [redacted] whatever prints it, or as an address
// where fmt does not see what it is. Its zero value has no text.
type Secret struct{ text *string }

// NewSecret hides a text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

const redacted = "[redacted]"

// Format implements fmt.Formatter, for all verbs.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// bearer puts a token on a request.
func (s Secret) bearer(r *http.Request) { r.Header.Set("Authorization", "Bearer "+s.Reveal()) }

var errToken = errors.New("it is not a token: there are blanks or other than visible ASCII characters in it")

// checkToken checks what can be a token: visible ASCII, not empty, not too long.
func checkToken(text string) (Secret, error) {
	if text == "" {
		return Secret{}, errors.New("it is empty")
	}
	if len(text) > maxToken {
		return Secret{}, fmt.Errorf("it has more than %d bytes", maxToken)
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return Secret{}, errToken
		}
	}
	return NewSecret(text), nil
}
