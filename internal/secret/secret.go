// Package secret holds secrets so that nothing prints them, and reads them from where
// they are: files and programs.
package secret

import (
	"errors"
	"fmt"
	"io"
)

// Max bounds a secret, in bytes; with a line's end where it is a line. It is the
// reference's bound of tokens.
const Max = 16384

// Secret is a text that prints as [redacted] whatever prints it, or as an address
// where fmt does not see what it is. Its zero value has no text.
type Secret struct{ text *string }

// New hides a text.
func New(text string) Secret { return Secret{&text} }

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero says whether there is none.
func (s Secret) IsZero() bool { return s.text == nil }

const redacted = "[redacted]"

// Format implements fmt.Formatter, for all verbs.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Token hides a text that can be a token: visible ASCII, not empty, not too long.
// Errors have nothing of the text.
func Token(text string) (Secret, error) {
	return check(text, func(c byte) bool { return c > ' ' && c <= '~' },
		"it is not a token: there are blanks or other than visible ASCII characters in it")
}

// Line hides a text that can be a password or part of a header: no control
// characters, not empty, not too long. Errors have nothing of the text.
func Line(text string) (Secret, error) {
	return check(text, func(c byte) bool { return c >= ' ' && c != 0x7f }, "there are control characters in it")
}

func check(text string, good func(byte) bool, bad string) (Secret, error) {
	if text == "" {
		return Secret{}, errors.New("it is empty")
	}
	if len(text) > Max {
		return Secret{}, fmt.Errorf("it has more than %d bytes", Max)
	}
	for i := range len(text) {
		if !good(text[i]) {
			return Secret{}, errors.New(bad)
		}
	}
	return New(text), nil
}
