package credential

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/exec-server/exec-server/internal/secret"
)

// The words are the reference's, but for what comes after the semicolon.
var (
	errBearer   = errors.New("expected a newline-terminated registration bearer of at most 16 KiB")
	errNoBearer = fmt.Errorf("%w; standard input is empty", errBearer)
)

// BearerStdin is the token on the first line of r, which is waited for; the end of r
// ends it too. It is made for one environment.
func BearerStdin(r io.Reader) (Source, error) {
	text, err := bufio.NewReaderSize(r, secret.Max).ReadSlice('\n')
	switch {
	case err == io.EOF && len(text) == 0:
		return nil, errNoBearer
	case err != nil && err != io.EOF:
		return nil, errBearer
	}
	token, err := secret.Token(unended(text))
	if err != nil {
		return nil, errors.New("invalid registration bearer")
	}
	return &fixed{token: token, rule: secureRule, scoped: true, place: "standard input"}, nil
}

// firstLine reads a line that ends, of at most secret.Max bytes with its end.
func firstLine(r io.Reader, bad error) (string, error) {
	line, err := bufio.NewReaderSize(r, secret.Max).ReadSlice('\n')
	if err != nil {
		return "", bad
	}
	return unended(line), nil
}

// unended is a line without its end.
func unended(line []byte) string {
	return strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
}
