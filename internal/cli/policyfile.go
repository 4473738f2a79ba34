package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/exec-server/exec-server/internal/network/rules"
)

// maxPolicy bounds a file with a policy, in bytes.
const maxPolicy = 4 << 20

// readPolicy reads a policy, or all that "policy NAME --json" prints, of which it
// takes that. "-" is in. Errors have the line and the column where they are known.
func readPolicy(path string, in io.Reader) (p rules.Policy, err error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return p, fmt.Errorf("--from: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxPolicy+1))
	switch {
	case err != nil:
		return p, fmt.Errorf("--from %s: %w", path, err)
	case len(text) > maxPolicy:
		return p, fmt.Errorf("--from %s: it has more than %d bytes", path, maxPolicy)
	case len(bytes.TrimSpace(text)) == 0:
		return p, fmt.Errorf("--from %s: it is empty", path)
	}
	p, at, err := parsePolicy(text)
	if err != nil {
		return p, fmt.Errorf("--from %s%s: %s", path, place(text, at), strings.TrimPrefix(err.Error(), "json: "))
	}
	return p, nil
}

// parsePolicy returns with an error the offset where it is, or -1.
func parsePolicy(text []byte) (p rules.Policy, at int, err error) {
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return p, offset(err), err
	}
	start := memberAt(text, "policy")
	d := json.NewDecoder(bytes.NewReader(text[start:]))
	d.DisallowUnknownFields()
	if err = d.Decode(&p); err == nil {
		return p, 0, nil
	}
	if _, name, unknown := strings.Cut(err.Error(), `unknown field "`); unknown {
		return p, keyAt(text, start, strings.TrimSuffix(name, `"`)), err
	}
	if at = offset(err); at >= 0 {
		at += start
	}
	return p, at, err
}

// offset is that of an error of the decoder, or -1.
func offset(err error) int {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return int(e.Offset)
	} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return int(e.Offset)
	}
	return -1
}

// memberAt is where the value of a member of the outermost object begins, or 0 if
// there is no such member.
func memberAt(text []byte, name string) int {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return 0
		}
		if key == name {
			at := int(d.InputOffset())
			return at + len(text[at:]) - len(bytes.TrimLeft(text[at:], ": \t\r\n"))
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return 0
		}
	}
	return 0
}

// keyAt is where the first text of that name ends behind start, or -1.
func keyAt(text []byte, start int, name string) int {
	d := json.NewDecoder(bytes.NewReader(text[start:]))
	for {
		if t, err := d.Token(); err != nil {
			return -1
		} else if t == name {
			return start + int(d.InputOffset())
		}
	}
}

// place is an offset as ":line:column", both from 1, or "".
func place(text []byte, at int) string {
	if at < 0 {
		return ""
	}
	before := text[:min(at, len(text))]
	return fmt.Sprintf(":%d:%d", bytes.Count(before, []byte("\n"))+1, max(1, len(before)-bytes.LastIndexByte(before, '\n')-1))
}
