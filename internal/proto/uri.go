package proto

import (
	"errors"
	"fmt"
	"strings"
)

// URI is a path as the wire carries it. The zero value is no path.
type URI struct {
	path    string // native, absolute and clean; "" if of another system
	foreign string // the URI as given, if it is of another system
	given   string // as given and normalised, if that is not how we write it
}

// FileURI returns the URI of a native absolute path.
func FileURI(path string) URI { return URI{path: cleanPath(path)} }

// Native is the path on this system. A URI of another system has none; the
// error is then an *Error with CodeInvalidRequest.
func (u URI) Native() (string, error) {
	if u.path == "" {
		return "", Invalid("'%s' is invalid on 'linux'", u.foreign)
	}
	return u.path, nil
}

// String is the URI in the form in which answers carry paths.
func (u URI) String() string {
	if u.path == "" {
		return u.foreign
	}
	return string(appendPathURI(nil, u.path))
}

// AppendURI appends the JSON string of a native path's URI.
func AppendURI(dst []byte, path string) []byte {
	return append(appendPathURI(append(dst, '"'), path), '"')
}

func appendPathURI(dst []byte, path string) []byte {
	return appendEscaped(append(dst, "file://"...), path, mustEscape)
}

// ParseURI reads a file URI by the rules that browsers have for URLs.
func ParseURI(text string) (URI, error) {
	// Tabs and line ends do not count anywhere in a URL.
	s := strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.Trim(text, " \x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"))
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || !isScheme(scheme) {
		return URI{}, errors.New("invalid URI: relative URL without a base")
	}
	if !strings.EqualFold(scheme, "file") {
		return URI{}, fmt.Errorf("unsupported path URI scheme `%s`", strings.ToLower(scheme))
	}
	if rest, fragment, ok := strings.Cut(rest, "#"); ok {
		_ = fragment
		if strings.Contains(rest, "?") {
			return URI{}, errors.New("query parameters are not allowed in path URIs")
		}
		return URI{}, errors.New("fragments are not allowed in path URIs")
	}
	if strings.Contains(rest, "?") {
		return URI{}, errors.New("query parameters are not allowed in path URIs")
	}
	rest = strings.ReplaceAll(rest, `\`, "/")
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		host, path, _ := strings.Cut(after, "/")
		if isDrive(host) { // file://C:/x
			return URI{foreign: s}, nil
		}
		if host != "" && !strings.EqualFold(host, "localhost") {
			return URI{foreign: s}, nil
		}
		rest = "/" + path
	}
	path, err := decodePath(rest)
	if err != nil {
		return URI{}, err
	}
	if strings.IndexByte(path, 0) >= 0 {
		return URI{}, fmt.Errorf("'%s' is invalid on 'linux'", s)
	}
	clean := cleanPath(path)
	if first, _, _ := strings.Cut(clean[1:], "/"); isDrive(first) {
		return URI{foreign: s}, nil
	}
	u := URI{path: clean}
	if given := givenURI(rest); given != u.String() {
		u.given = given
	}
	return u, nil
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (i == 0 || (s[i] < '0' || s[i] > '9') && strings.IndexByte("+-.", s[i]) < 0) {
			return false
		}
	}
	return s != ""
}

func isDrive(s string) bool {
	return len(s) == 2 && (s[1] == ':' || s[1] == '|') && isScheme(s[:1])
}

func decodePath(s string) (string, error) {
	if strings.IndexByte(s, '%') < 0 {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if r, ok := hex4([]byte{'0', '0', s[i+1], s[i+2]}); ok {
				out = append(out, byte(r))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out), nil
}

// cleanPath makes a path absolute and resolves its dot segments as text.
func cleanPath(path string) string {
	segments := make([]string, 0, 8)
	for seg := range strings.SplitSeq(path, "/") {
		switch seg {
		case "", ".":
		case "..":
			if len(segments) > 0 {
				segments = segments[:len(segments)-1]
			}
		default:
			segments = append(segments, seg)
		}
	}
	return "/" + strings.Join(segments, "/")
}
