package proto

import "strings"

// Given is the URI as the peer wrote it, as browsers normalise that: dot
// segments are gone, what must be encoded is, and all else stays. Answers that
// echo paths are built from it.
func (u URI) Given() string {
	if u.given != "" {
		return u.given
	}
	return u.String()
}

// Below is the URI of what is found at a native path at or below u, built from
// how u was given.
func (u URI) Below(path string) string {
	if u.given == "" {
		return FileURI(path).String()
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(path, u.path), "/")
	if rest == "" {
		return u.given
	}
	return string(appendEscaped(append([]byte(strings.TrimSuffix(u.given, "/")), '/'), rest, mustEscape))
}

// Characters that are escaped beside those that are not printable: in paths, and
// in text that is a URI's already.
const (
	mustEscape  = "\"#%<>?`{}\\"
	givenEscape = "\"#<>?`{}"
)

func appendEscaped(dst []byte, s, escape string) []byte {
	const upper = "0123456789ABCDEF"
	for i := range len(s) {
		c := s[i]
		if c <= 0x20 || c >= 0x7f || strings.IndexByte(escape, c) >= 0 {
			dst = append(dst, '%', upper[c>>4], upper[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}
