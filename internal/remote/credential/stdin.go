package credential

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// BearerStdin is the token on the first line of r, which is waited for. It is
// made for one environment.
func BearerStdin(r io.Reader) (Source, error) {
	line, err := firstLine(r, errors.New("expected a newline-terminated registration bearer of at most 16 KiB"))
	if err != nil {
		return nil, err
	}
	token, err := checkToken(line)
	if err != nil {
		return nil, errors.New("invalid registration bearer")
	}
	return &fixed{token: token, rule: secureRule, scoped: true}, nil
}

// firstLine reads a line that ends, of at most maxToken bytes with its end.
func firstLine(r io.Reader, bad error) (string, error) {
	line, err := bufio.NewReaderSize(r, maxToken).ReadSlice('\n')
	if err != nil {
		return "", bad
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"), nil
}
