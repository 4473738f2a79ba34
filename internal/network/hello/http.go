package hello

import (
	"bytes"
	"strings"
)

const (
	// preface is how HTTP/2 begins.
	preface = "PRI * HTTP/2.0\r\n"
	// maxMethod is the longest method that is looked for; the longest registered one
	// has 17 letters.
	maxMethod = 32
)

// parseHTTP reads the head of a request. It says HTTP of everything that a lenient
// server may take for it, and a name only of what is read alike everywhere.
func parseHTTP(b []byte) (Hello, bool) {
	if bytes.HasPrefix(b, []byte(preface)) {
		return Hello{Kind: H2C}, true
	}
	text := bytes.TrimLeft(b, "\r\n") // which servers skip
	n := bytes.IndexFunc(text, func(r rune) bool { return !isToken(r) })
	switch {
	case n < 0 && len(text) <= maxMethod:
		return Hello{}, false
	case n < 1 || n > maxMethod || text[n] != ' ' && text[n] != '\t':
		return Hello{}, true
	}
	line, rest, ended := bytes.Cut(text, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	if bytes.ContainsFunc(line, isControl) {
		return Hello{}, true
	}
	if !ended {
		return Hello{Kind: HTTP}, false
	}
	fields := bytes.Fields(line)
	if v := fields[len(fields)-1]; len(v) < 5 || !bytes.EqualFold(v[:5], []byte("HTTP/")) {
		return Hello{}, true
	}
	head, ended := cutHead(rest)
	if !ended {
		return Hello{Kind: HTTP}, false
	}
	if len(text) != len(b) {
		return Hello{Kind: HTTP}, true
	}
	return Hello{Kind: HTTP, Name: requestName(string(line), head)}, true
}

// cutHead returns the lines before the first empty one.
func cutHead(b []byte) ([]string, bool) {
	var lines []string
	for {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		if !ended {
			return nil, false
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			return lines, true
		}
		lines = append(lines, string(line))
		b = rest
	}
}

// requestName is the host that a request is for; "" if it may be read in two ways.
func requestName(line string, head []string) string {
	parts := strings.Split(line, " ")
	if len(parts) != 3 {
		return ""
	}
	name, seen := "", false
	for _, field := range head {
		key, value, ok := strings.Cut(field, ":")
		if !ok || key == "" || strings.ContainsFunc(key, func(r rune) bool { return !isToken(r) }) || strings.ContainsFunc(value, isControl) {
			return "" // a line that goes on with the one before, among others
		}
		if !strings.EqualFold(key, "Host") {
			continue
		}
		if name, _, ok = Host(strings.Trim(value, " \t")); !ok || seen {
			return ""
		}
		seen = true
	}
	if parts[1] == "*" || strings.HasPrefix(parts[1], "/") {
		return name
	}
	_, rest, ok := strings.Cut(parts[1], "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	target, _, valid := Host(rest)
	if !ok || !valid || seen && name != target {
		return ""
	}
	return target
}

// isToken says whether RFC 9110 has it in tokens, as names of methods and fields are.
func isToken(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r < 0x80 && r > ' ' && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
