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

// givenURI normalises the path of a URI, whose slashes all lean forward.
func givenURI(path string) string {
	segments := make([]string, 0, 8)
	rest, more := strings.TrimPrefix(path, "/"), true
	for more {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch dots := strings.ReplaceAll(strings.ToLower(segment), "%2e", "."); dots {
		case ".", "..":
			if dots == ".." && len(segments) > 0 {
				segments = segments[:len(segments)-1]
			}
			if !more { // it names the directory
				segments = append(segments, "")
			}
		default:
			segments = append(segments, segment)
		}
	}
	return string(appendEscaped([]byte("file:///"), strings.Join(segments, "/"), givenEscape))
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
