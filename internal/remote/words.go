package remote

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWords bounds what is told of an error, in characters: a registry's message and
// what is before it.
const maxWords = 4096 + 512

// words is an error's text, fit for a line. There may be words of the other side in
// it: names of a certificate, a URL.
func words(err error) string {
	if err == nil {
		return ""
	}
	n := 0
	return strings.Map(func(r rune) rune {
		switch n++; {
		case n > maxWords:
			return -1
		case r == utf8.RuneError, unicode.IsPrint(r):
			return r
		}
		return ' '
	}, err.Error())
}
